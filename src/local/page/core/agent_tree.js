/** Agents as they are shown: each below the one that has made it, under the question from which all of them came. */

/** @typedef {{agent_id: string, name: string, parent_id: string | null, state: string, root_query_id: string,
 *   root_session_id: string, question?: string, made_at: number, ended_at: number | null} & Record<string, any>} Agent
 * @typedef {{agent: Agent, below: Branch[]}} Branch */

/** The questions, the latest first, each with the agents that it has made. @param {Agent[]} agents the oldest first
 * @returns {{query_id: string, session_id: string, question: string, isOpen: boolean, branches: Branch[], count: number}[]} */
export function byQuestion(agents) {
  const roots = new Map();
  for (const agent of agents) roots.set(agent.root_query_id, [...(roots.get(agent.root_query_id) ?? []), agent]);
  return [...roots]
    .map(([query_id, of]) => ({
      query_id,
      session_id: of[0].root_session_id,
      question: of[0].question ?? "",
      isOpen: of.some(isOpen),
      branches: branches(of),
      count: of.length,
      at: Math.max(...of.map((one) => one.made_at)),
    }))
    .sort((one, other) => Number(other.isOpen) - Number(one.isOpen) || other.at - one.at);
}

/** Whether it can still be stopped. @param {Agent} agent */
export function isOpen(agent) {
  return agent.ended_at == null && agent.state !== "ENDED";
}

/** Those whose parent is not among them stand at the top, so that none is lost. @param {Agent[]} agents @returns {Branch[]} */
function branches(agents) {
  const known = new Set(agents.map((one) => one.agent_id));
  const below = (parent) => agents.filter((one) => one.parent_id === parent).map((agent) => ({ agent, below: below(agent.agent_id) }));
  return agents.filter((one) => one.parent_id == null || !known.has(one.parent_id)).map((agent) => ({ agent, below: below(agent.agent_id) }));
}

/** How many agents are below one. @param {Branch} branch @returns {number} */
export function countBelow({ below }) {
  return below.reduce((sum, one) => sum + 1 + countBelow(one), 0);
}
