"""The names of the tools that a turn has by itself. Terminals read them, too, so this file imports nothing."""

CLARIFICATION = "request_clarification"  # by which a model asks its user something
TODO_LIST = "todo"  # by which it keeps the list of what it has to do
PROPOSE_PLAN = "propose_plan"  # by which it asks for approval of a plan
PLAN_STEP = "plan_step"  # by which it says how far that is
TOOL_SEARCH = "tool_search"  # by which it finds tools that it is not offered
CALL_TOOL = "call_tool"  # by which it calls one of those
