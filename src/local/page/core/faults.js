/** Why a question has no answer, as a person reads it: one sentence, and the one thing that helps. */

const AGAIN = { act: "again", word: "Ask again" };
const OTHER = { act: "model", word: "Choose another model" };
const FRESH = { act: "new", word: "New conversation" };

/** By the kind of error. @type {Record<string, {text: string, act: string, word: string}>} */
const FAULTS = {
  model_missing: { text: "The model is not installed.", ...OTHER },
  unsupported: { text: "The model cannot do this.", ...OTHER },
  out_of_memory: { text: "The model does not fit into memory.", ...OTHER },
  quota: { text: "The credit at the provider is used up.", ...OTHER },
  unauthorised: { text: "The provider does not accept the key.", ...OTHER },
  filtered: { text: "The provider refused the question.", ...OTHER },
  unreachable: { text: "The model server does not answer.", ...AGAIN },
  timeout: { text: "The model took too long.", ...AGAIN },
  stream_cut: { text: "The answer broke off.", ...AGAIN },
  bad_stream: { text: "The model server sent something unreadable.", ...AGAIN },
  context_overflow: { text: "The conversation does not fit into the model's context.", ...FRESH },
  rate_limit: { text: "The provider allows no more questions for the moment.", ...AGAIN },
  overloaded: { text: "The model server has too much to do.", ...AGAIN },
  busy: { text: "The model server has too much to do.", ...AGAIN },
  budget_spent: { text: "The budget is used up.", ...AGAIN },
  unavailable: { text: "LoCAL2 cannot answer now.", ...AGAIN },
  gave_up: { text: "LoCAL2 failed several times at this question.", ...AGAIN },
};

const UNKNOWN = { text: "There is no answer.", ...AGAIN };

/** @param {{kind?: string, message?: string} | null} error @returns {{text: string, cause: string, act: string, word: string}} */
export function faultOf(error) {
  const { kind = "", message = "" } = error ?? {};
  const known = Object.hasOwn(FAULTS, kind) ? FAULTS[kind] : UNKNOWN;
  return { ...known, cause: message ? sentence(message) : "The reason is unknown." };
}

function sentence(text) {
  const whole = /[.!?…]$/.test(text) ? text : `${text}.`;
  return whole[0].toUpperCase() + whole.slice(1);
}

/** Whether something says no more than what is said elsewhere. @param {string} text @param {string[]} others */
export function isSaid(text, others) {
  return others.some((other) => other && (text.includes(other) || other.includes(text)));
}
