"""Language models: chat clients, the router between servers, servers that LoCAL2 runs itself, and who may call them."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"arbiter": "local.models.arbiter:Arbiter", "model_keeper": "local.models.keeper:ModelManager"},
    messages=("local.models.messages", "local.models.lease_messages"),
    routes=("local.models.routes:add_routes",),
    requests=("local.models.messages:ModelRequest",),
)
