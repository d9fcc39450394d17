"""Section `dashboard`: its address, and who may use it."""

from pydantic import Field

from gateway.config.sections import ConfigSection


class DashboardSection(ConfigSection):
    enabled: bool = Field(False, description="start the dashboard with `breakeven serve`")
    host: str = Field("127.0.0.1", description="address the dashboard listens on")
    port: int = Field(8501, ge=0, le=65535, description="port the dashboard listens on")
    access_file: str | None = Field(
        None, min_length=1,
        description="file that says who may look, and how people sign in "
        "(docs/how-to/dashboard-access.md); without it the dashboard is open, and listens on this "
        "machine alone",
    )  # fmt: skip
    reader_url_env: str | None = Field(
        None, description="environment variable with the ledger's address as a role that only reads"
    )
