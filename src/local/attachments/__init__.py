"""Files that come with a question."""

from local.core.capability import Capability

CAPABILITY = Capability(
    routes=("local.attachments.routes:add_routes",),
)
