"""Traffic with costs on every basis and claims, and its retirement: for tests of invoices."""

from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.seals.compact import PostingCompactor
from ledger.seals.retire import AttemptRetirer
from ledger.sums.rollups import Rollups


def retire_before(engine, before_us):
    """Retire what settled before; return how many attempts went."""
    while Rollups(engine).follow():
        pass
    retirer, gone = AttemptRetirer(engine, rows_at_once=3), 0
    while True:
        step = retirer.step(before_us=before_us, at_us=1)
        gone += step.attempts
        if step.waits_for:
            return gone


def compact_all(engine):
    """Compact the postings of retired attempts; return how many went."""
    compactor, gone = PostingCompactor(engine, rows_at_once=5), 0
    while True:
        step = compactor.step(before_us=2**62, at_us=1)
        gone += step.postings
        if step.waits_for:
            return gone


def post_lines(engine, provider, lines, manner, *, at_us, offset_min=0):
    """Import and post a bill of (day, amount) or (day, amount, item); return what was posted."""
    made = tuple(InvoiceLine(day, *(item or ("m",)), pusd) for day, pusd, *item in lines)
    file = InvoiceFile("csv", made, 12, f"digest {at_us}", offset_min)
    number = store(engine, file, party=f"provider:{provider}", name="x.csv", by="ann", at_us=at_us)
    return post_invoice(engine, number, by="ann", at_us=at_us, manner=manner)
