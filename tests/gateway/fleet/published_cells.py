"""One engine's cells of the table, as a telemetry process publishes them."""

from gateway.table_layout import HEALTHS, EngineCell

NOW_S = 50.0
PUBLISHED = {
    EngineCell.HEALTH: float(HEALTHS.index("healthy")),
    EngineCell.KV_CAPACITY_TOKENS: 2944.0,
    EngineCell.KV_BLOCK_TOKENS: 128.0,
    EngineCell.A_S: 0.01,
    EngineCell.B_S: 0.001,
    EngineCell.C_S: 1e-6,
    EngineCell.D_S: 1e-4,
    EngineCell.CONTEXT_TOKENS: 2048.0,
    EngineCell.UPDATED_S: NOW_S - 1.0,
}
