"""Hash chains over the ledger's rows, and deletion of sealed rows past retention."""
