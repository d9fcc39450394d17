"""From journals into the books, exactly once: what `ledger.writer` is made of."""
