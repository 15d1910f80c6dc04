// Made by scripts/make_types.py from the code; do not edit.

/** The budget or the usage of an agent, including its own agents: tokens, seconds, calls of tools; and the number of agents that it may have. */
export interface AgentBudget {
  tokens: number;
  seconds: number;
  calls: number;
  children: number;
}

/** Published by the swarm when an agent is made, is given a task, has ended one, or ends itself. It belongs to the query whose model has made it; `task_query_id` is the query of its task. */
export interface AgentChanged {
  agent_id: string;
  name: string;
  parent_id: string | null;
  depth: number;
  state: string;
  query_id: string;
  root_query_id: string;
  task_query_id: string;
  error: ErrorInfo | null;
}

/** A letter of an agent or to it, as frontends show it. `sender` and `to` are names; "root" is the user's query. */
export interface AgentLetter {
  sender: string;
  to: string;
  text: string;
  at: number;
  is_read: boolean;
  tainted: boolean;
}

/** An agent as frontends show it. `parent_id` is None for one that a user's query has made. `task` is its latest, asked as `task_query_id`, with its result. `question` is the user's, empty where it is not known. Times are seconds since 1970. */
export interface AgentRecord {
  agent_id: string;
  name: string;
  parent_id: string | null;
  depth: number;
  state: string;
  root_query_id: string;
  root_session_id: string;
  parent_query_id: string;
  question: string;
  task: string;
  task_query_id: string;
  tasks: number;
  answer: string | null;
  error: ErrorInfo | null;
  tainted: boolean;
  budget: AgentBudget;
  used: AgentBudget;
  made_at: number;
  ended_at: number | null;
}

/** A frontend's request to list the agents (with `query_id`: of one query), to show one with its tasks and letters, or to stop one with all that it has made. With `of_user` only that user's agents exist. */
export interface AgentRequest {
  verb: "list" | "show" | "stop";
  of_user: string | null;
  query_id: string;
  agent_id: string;
}

/** The answer of the swarm. Only `show` has tasks and letters, the oldest first. */
export interface AgentResult {
  verb: "list" | "show" | "stop";
  agents: AgentRecord[];
  tasks: AgentTaskRecord[];
  letters: AgentLetter[];
  error: ErrorInfo | null;
}

/** The part of a query that describes a task for an agent: who asks, which agent, and the limits of the turn (`max_tokens`, `max_calls`). `asked` is the user's question that led to the task, the only text of the query that a user wrote. `tainted`: the model that wrote the task had read untrusted content. `in_background`: no turn waits for the answer. */
export interface AgentTask {
  agent_id: string;
  name: string;
  depth: number;
  parent_query_id: string;
  root_query_id: string;
  root_session_id: string;
  asked: string;
  tainted: boolean;
  in_background: boolean;
  max_tokens: number;
  max_calls: number;
}

/** A task of an agent with its result, as frontends show it. `sources` names where untrusted content in the answer came from. */
export interface AgentTaskRecord {
  query_id: string;
  text: string;
  state: string;
  answer: string;
  error: ErrorInfo | null;
  sources: string[];
  tokens: number;
  asked_at: number;
}

/** A change of state of a state machine. Sent with the fields `from` and `to`; `then` lists the changes that followed immediately. `phase` is the current phase of a turn that may change things: researching, editing, verifying or completing. */
export interface AgentTransition {
  agent: string;
  query_id: string;
  respondent_id: string;
  from: string;
  action: string;
  to: string;
  then: Record<string, string>[];
  phase: string;
}

/** The exchange alone, published by the generator after an answer, for observers that keep histories. */
export interface AnswerDialog {
  query_id: string;
  respondent_id: string;
  query: string;
  answer: string;
  session_id: string | null;
}

/** The options of one answer, as the client requests them; None or empty means the default of the settings. `functions` are functions that the client runs itself: an answer that calls any ends with its `client_calls`. `must_call` is the name of one of them, or "any". `allow`, `deny` and a `profile` narrow the tools that the model is offered. `mode` decides about calls that need approval. With `remember` an exchange is remembered even though the client keeps the history. `model` is the model that answers from now on in the conversation and overrides that of the profile; "default" is the one of the settings. `settings` are those of the conversation from this question on. */
export interface AnswerOptions {
  temperature: number | null;
  top_p: number | null;
  frequency_penalty: number | null;
  presence_penalty: number | null;
  seed: number | null;
  stop: string[] | null;
  max_tokens: number | null;
  think: boolean | null;
  format: Record<string, unknown> | null;
  functions: Record<string, unknown>[];
  must_call: string | null;
  one_call: boolean;
  allow: string[] | null;
  deny: string[];
  remember: boolean;
  mode: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions" | null;
  profile: AnswerProfile | null;
  model: string | null;
  settings: SessionSettings | null;
}

/** A kind of assistant: its text and the tools that it may be offered (None: all). `model` replaces the default model. */
export interface AnswerProfile {
  name: string;
  tools: string[] | null;
  model: string | null;
  instructions: string;
}

/** The final decision about an approval: `by` whom, "silence" if the time ran out. `answer` is the user's reply, `mode` how the rest of a turn with an approved plan runs. */
export interface ApprovalDecision {
  query_id: string;
  respondent_id: string;
  call_id: string;
  session_id: string;
  tool: string;
  decision: "allow" | "allow_session" | "deny";
  by: string;
  answer: string | null;
  mode: "default" | "acceptEdits" | null;
  decided_at: number;
}

/** The gatekeeper's request to a person, about a call or for the model: asked once, and open until `approval.decision` or `expires_at`, in seconds since 1970. `why` is a sentence, `sources` names where untrusted content came from. For an agent, `agent` is its name, and the request is shown in the conversation `root_session_id`, whose query `root_query_id` started the agent. For a program's own call, without a model of ours in a conversation, `client` is its name. `user_id` is the user whose conversation asks; with `owner_decides` only the owner can allow it. */
export interface ApprovalRequest {
  query_id: string;
  respondent_id: string;
  call_id: string;
  session_id: string;
  tool: string;
  args: Record<string, unknown>;
  level: "L0" | "L1" | "L2";
  category: "read" | "write" | "search" | "shell" | "web" | "git" | "data" | "meta" | "memory";
  why: string;
  tainted: boolean;
  sources: string[];
  agent: string;
  root_query_id: string;
  root_session_id: string;
  client: string;
  user_id: string;
  owner_decides: boolean;
  asked_at: number;
  expires_at: number;
}

/** The answer to a `blob.put`: `is_whole` once the whole blob is on the disk. */
export interface BlobKept {
  client: string;
  is_whole: boolean;
  error: ErrorInfo | null;
}

/** A range of a blob, in base64, encrypted for the participant that requested it. */
export interface BlobPart {
  client: string;
  sealed: string;
  error: ErrorInfo | null;
}

/** A range of a blob of `size` bytes that a participant on another machine stores, in base64, encrypted for the proxy's process. */
export interface BlobPut {
  client: string;
  blob: string;
  size: number;
  start: number;
  sealed: string;
}

/** A request of a participant on another machine for a range of a blob. */
export interface BlobRequest {
  client: string;
  blob: string;
  start: number;
}

/** The report of a dead letter: which message could not be handled, and why. Published by the participant or, where redelivery was given up, by the journal. */
export interface BusDead {
  participant: string;
  envelope_id: string;
  dead_subject: string;
  error: ErrorInfo;
}

/** The declaration of a participant on another machine, before its first message: the subjects that it wants to publish, and the durable consumers that it serves. The proxy's process answers. */
export interface BusDeclare {
  client: string;
  says: string[];
  serves: string[];
}

/** The answer to a `bus.declare`: why it was refused, or what the participant needs to know of this machine: the public key of the gatekeeper in hexadecimal digits, and the time in seconds since 1970. */
export interface BusDeclared {
  client: string;
  grants_key: string;
  time: number;
  error: ErrorInfo | null;
}

/** The report of a receiver that messages did not arrive: from which sender, on which subject, and how many. */
export interface BusGap {
  observer: string;
  sender: string;
  instance: string;
  missed_subject: string;
  missed: number;
}

/** A message that a bus sends to itself, to prove that its subscriptions are in place. `heard_as` is the instance and how often it has started to listen. */
export interface BusProbe {
  heard_as: string;
  instance: string;
  attempt: number;
}

/** One change of an engram: `what` (pinned, score, sentiment, winner, withdrawn) became `value` then. */
export interface ChangeRecord {
  at: number;
  what: string;
  value: string | null;
}

/** A frontend's request to list the changes of files, show them with diffs, or undo them: of a call, of a query, or between two times. Not recorded, because its subject may be deleted. */
export interface ChangeRequest {
  verb: "list" | "show" | "undo";
  call_id: string | null;
  query_id: string | null;
  since: number | null;
  until: number | null;
  limit: number;
}

/** The answer to that: the changes, the latest first; of undo those that were undone now. */
export interface ChangeResult {
  verb: string;
  workspace: string;
  changes: ChangedFile[];
  error: ErrorInfo | null;
}

/** One change of a file by one call of a tool: made, written, edited or deleted. `undone` says that it was undone; `diff` is in the unified form, in results of show and undo, and empty for binary content. */
export interface ChangedFile {
  path: string;
  what: "made" | "changed" | "deleted";
  tool: string;
  call_id: string;
  query_id: string;
  session_id: string;
  at: number;
  undone: boolean;
  diff: string;
}

/** One process as the supervisor sees it. `detail` is the reason of its last end. */
export interface ChildStatus {
  name: string;
  kind: string;
  state: string;
  pid: number | null;
  restarts: number;
  detail: string;
}

/** A call of one of the client's own functions, which the client has to make. */
export interface ClientCall {
  call_id: string;
  function: string;
  arguments: Record<string, unknown>;
}

/** A frontend's request for a program: list the tools, or call one (`tool`, `args`) under an id that is not a query's. `client` is the program's name; `asks` says whether a person is asked for approvals, which are denied otherwise. */
export interface ClientToolRequest {
  verb: "list" | "call";
  query_id: string;
  tool: string;
  args: Record<string, unknown>;
  client: string;
  asks: boolean;
}

/** The generator's answer: the tools, or the result of the call, `tainted` if it may hold untrusted content. */
export interface ClientToolResult {
  verb: "list" | "call";
  tools: ToolSchema[];
  result: ToolResult | null;
  error: ErrorInfo | null;
}

/** A request of the tool `compare_answers` to compare two texts, made by a model. A user waits for it only if it is the main respondent's. */
export interface ComparisonRequest {
  respondent_id: string;
  question: string;
  answer_a: string;
  answer_b: string;
}

/** The critic's answer to a `ComparisonRequest`; `error` says why there is no comparison. */
export interface ComparisonResult {
  winner: "A" | "B" | "tie" | null;
  order_consistent: boolean | null;
  feedback: string;
  judge: string;
  error: ErrorInfo | null;
}

/** A durable consumer that a process serves. `subjects` are whole ones and families. With `linger_ms` a delivery may be held back so long, to travel with others. */
export interface ConsumerClaim {
  name: string;
  subjects: string[];
  max_in_flight: number;
  lane_width: number;
  linger_ms: number;
}

/** Published by the generator before it shortens the context of a model: what is left out, and what remains. */
export interface ContextCompacted {
  query_id: string;
  respondent_id: string;
  summarised_turns: number;
  left_out_turns: number;
  masked_results: number;
  folded_rounds: number;
  tokens_before: number;
  gauge: ContextGauge;
}

/** The fill level of a model's context window: tokens of the prompt, of the whole window, and by part, all estimated. */
export interface ContextGauge {
  used: number;
  limit: number;
  parts: Record<string, number>;
}

/** Published by a respondent, at most once per turn, when it adds remembered content to the prompt: facts (lines), facts given earlier in the conversation that are no longer true (`gone`), and recalled exchanges. `engram_ids` are the engrams that all of this comes from; `tokens` estimates the whole block of context. `hint` is the line behind the question that tells a small model to answer, or which tool to call. */
export interface ContextProvided {
  query_id: string;
  respondent_id: string;
  facts: string[];
  gone: string[];
  recalled: RecalledExchange[];
  engram_ids: string[];
  tokens: number;
  hint: string;
}

/** A frontend's request to read or change the generator's conversations. Verbs: sessions (`key` is the user, none means all; `query`, `folder`, `tag`, `archived`, `cursor`, `limit`, `among`), session, query, turns (`before` or `after` the query `at` or a `position`, or around it: `order`), find (`query`), change (`labels`: title, pinned, settings, folder, tags, archived), branch (`before` or `through`, `branch_id`, `is_version`), delete, prompt (the system prompt of that user's queries with these `options`), import (`source`, `origin_id`, `title`, `exchanges` of a conversation of `of_user`), size (the bytes that are stored of the user `key`). `key` is the id of the session or the query. With `of_user` the sessions of other users are hidden. */
export interface ConversationRequest {
  verb: "sessions" | "session" | "turns" | "find" | "change" | "branch" | "delete" | "query" | "prompt" | "import" | "size";
  key: string;
  of_user: string | null;
  query: string;
  cursor: string;
  limit: number;
  among: string[] | null;
  order: "before" | "after" | "at";
  at: string;
  position: number | null;
  folder: string | null;
  tag: string | null;
  archived: boolean | null;
  labels: Record<string, string | boolean | string[] | SessionSettings | null>;
  before: string;
  through: string;
  branch_id: string;
  is_version: boolean;
  options: AnswerOptions | null;
  source: string;
  origin_id: string;
  title: string;
  exchanges: ImportedExchange[];
}

/** The generator's answer to a `ConversationRequest`: `value` is the requested record, or `error` the reason why there is none. */
export interface ConversationResult {
  verb: string;
  value: Record<string, unknown> | null;
  error: ErrorInfo | null;
}

/** The critic's grade of an answer. `score` is 1 to 5, or null with a status that says why; `expected` is the mean over the judge's probabilities of the scores, where they are known. */
export interface CritiqueResult {
  query_id: string;
  respondent_id: string;
  score: number | null;
  expected: number | null;
  status: "graded" | "unparsed" | "failed" | "skipped" | "judge_unfit";
  feedback: string;
  rubric: string;
  judge: string;
  self_judged: boolean;
  session_id: string | null;
}

/** Published by `cron` when a job was added, changed, paused, resumed or removed; `what` is its state. */
export interface CronJobChanged {
  what: "active" | "paused" | "removed";
  job: CronJobRecord;
}

/** A job as it is stored and shown. Times are seconds since 1970. A job that was made in a conversation with untrusted content is `tainted`, and so are its runs. `enabled` and `next_at` are computed, not stored. */
export interface CronJobRecord {
  prompt: string;
  schedule: string;
  name: string;
  time_zone: string;
  missed: "once" | "all" | "none";
  session_id: string | null;
  mode: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions";
  max_runs_a_day: number;
  max_tokens_a_day: number | null;
  job_id: string;
  user_id: string | null;
  enabled: boolean;
  tainted: boolean;
  created_by: string;
  created_at: number;
  next_at: number | null;
}

/** A frontend's request about jobs: list, preview (when the job of `order` would run), add (`order`), change (to `order`), remove, pause, resume, run now, or history (the runs of one). With `of_user` only that user's jobs exist. It is not recorded, because it may be refused. */
export interface CronRequest {
  verb: "list" | "preview" | "add" | "change" | "remove" | "pause" | "resume" | "run" | "history";
  of_user: string | null;
  job_id: string;
  order: NewJob | null;
  by: string;
  limit: number;
}

/** The answer of `cron`: all jobs or the requested one; for run and history also the runs, the latest first; for preview the next `times`, in seconds since 1970, and the time zone in which they were read. */
export interface CronResult {
  verb: string;
  jobs: CronJobRecord[];
  runs: CronRunRecord[];
  times: number[];
  time_zone: string;
  error: ErrorInfo | null;
}

/** Published by `cron` when a run is asked as a query, and when it has ended, was missed or was refused. */
export interface CronRun {
  name: string;
  run: CronRunRecord;
}

/** One run of a job, for the time `scheduled_at`. `detail` is a sentence about its state, if there is one. */
export interface CronRunRecord {
  job_id: string;
  run_id: string;
  scheduled_at: number;
  query_id: string;
  state: "due" | "asked" | "answered" | "failed" | "cancelled" | "refused" | "missed";
  by_hand: boolean;
  detail: string;
  tokens: number;
  ended_at: number | null;
}

/** One dead letter: the message's number and subject, the consumer that was given up with it, and the reason. */
export interface DeadLetterEntry {
  number: number;
  committed_at: number;
  consumer: string;
  dead_subject: string;
  query_id: string;
  reason: string;
}

/** A dream, published by the dreamer. The memory stores its notes. `read` counts the exchanges between the times `since` and `until` (seconds since 1970), `left_out` those with untrusted content, which are not read. `proposes_soul` says that a change of the soul waits for the owner, `proposes_skill` names the skill for which one does. */
export interface DreamMade {
  dream_id: string;
  notes: DreamNote[];
  read: number;
  left_out: number;
  since: number;
  until: number;
  model: string;
  proposes_soul: boolean;
  proposes_skill: string;
}

/** One note of a dream, and the engrams of the exchanges that it is based on. `engram_id` is its future id in the memory. */
export interface DreamNote {
  engram_id: string;
  text: string;
  sources: string[];
}

/** A user's edit of an entry: a new one without `entry_id`, a deletion without `text`. `line` is its line in the file, 0 if there is none. A fact holds from and until these days, as 2026-11-27, empty if not given. */
export interface EditRecord {
  line: number;
  kind: "fact" | "note";
  entry_id: string;
  text: string;
  holds_from: string;
  holds_until: string;
}

/** `files`, when a user has taken changes back: which calls of tools, and the files. */
export interface EffectUndone {
  call_ids: string[];
  paths: string[];
}

/** A remembered exchange. `origin` is the source of its content: user, assistant, web, tool. `score` is the critic's, `sentiment` the user's rating, `winner` the respondent whose answer won a comparison, or "tie"; `recalled` are the engrams that the answer is based on. `cut` means that `query` or `answer` is shortened; an export has both. Of a note of the assistant's, `note_of` is the query in which it was written, `answer` its text, `query` its category. */
export interface EngramRecord {
  engram_id: string;
  query_id: string;
  respondent_id: string;
  session_id: string;
  query: string;
  answer: string;
  origin: string;
  asked_at: number;
  pinned: boolean;
  score: number | null;
  sentiment: number | null;
  winner: "A" | "B" | "tie" | null;
  superseded_by: string | null;
  recalled: string[];
  intent: string | null;
  entities: string[];
  tainted: boolean;
  note_of: string | null;
  cut: boolean;
}

/** A current fact or note, as a line of MEMORY.md. `entry_id` names it as long as its text is the same; a `tainted` one was written with untrusted content in front of the model, and the user was not sure of one that is not `certain`. */
export interface EntryRecord {
  kind: "fact" | "note";
  entry_id: string;
  text: string;
  category: string;
  tainted: boolean;
  certain: boolean;
}

/** A failure as data: `kind` is a word for programs, `message` a sentence for people. */
export interface ErrorInfo {
  kind: string;
  message: string;
}

/** A fact that a user stated; one without `superseded_at` holds. Times are seconds since 1970. The user was not sure of one that is not `certain`; one that is `added` holds beside the others of its slot. One that is not `confirmed` is confirmed by nobody: it is not current, and in no prompt unless it is about health. One that is `questioned` may be changed by an unconfirmed one. `fact_id` names it. `holds_from` and `holds_until` are the days, as 2026-11-27, from and until which it is true, empty if unknown. `of_health`: it is about health or safety. */
export interface FactRecord {
  slot: string;
  value: string;
  stated_at: number;
  engram_id: string;
  superseded_at: number | null;
  certain: boolean;
  added: boolean;
  confirmed: boolean;
  questioned: boolean;
  fact_id: number;
  holds_from: string;
  holds_until: string;
  of_health: boolean;
}

/** Published by the generator while the model reads its prompt, before it generates: `done` of `total` tokens are read. Only where the model's server reports it, a few times a second at most. */
export interface GenerationProgress {
  query_id: string;
  respondent_id: string;
  attempt: number;
  done: number;
  total: number;
}

/** A fragment of the model's thinking, published by the generator; `index` counts from 0 within an attempt. */
export interface GenerationThinking {
  query_id: string;
  respondent_id: string;
  attempt: number;
  index: number;
  text: string;
}

/** A fragment of the answer, published by the generator; `index` counts together with the thinking. */
export interface GenerationToken {
  query_id: string;
  respondent_id: string;
  attempt: number;
  index: number;
  text: string;
}

/** Published by the generator while no model server answers; `reason` is a sentence. The text of earlier attempts is void. */
export interface GenerationWaiting {
  query_id: string;
  respondent_id: string;
  attempt: number;
  reason: string;
}

/** Published by the heartbeat when a goal is set, done, dropped or open again; `by` names who changed it: the heartbeat if a check has shown that the goal is reached. */
export interface GoalChanged {
  goal_id: string;
  text: string;
  state: "active" | "done" | "dropped";
  by: string;
}

/** A goal as it is published. Times are seconds since 1970. `checks` counts its checks, `quiet` those without a remark; `words` is the latest remark, of the time `words_at`. */
export interface GoalRecord {
  goal_id: string;
  text: string;
  schedule: string;
  time_zone: string;
  state: "active" | "done" | "dropped";
  created_at: number;
  created_by: string;
  next_at: number | null;
  checks: number;
  quiet: number;
  words: string;
  words_at: number | null;
  is_seen: boolean;
}

/** A frontend's request about goals: list, set (`text`, `schedule`, `by`), done, drop, reopen, or seen (the remark on `goal_id` of the time `words_at`). It is not recorded, because it may be refused. */
export interface GoalRequest {
  verb: "list" | "set" | "done" | "drop" | "reopen" | "seen";
  goal_id: string;
  text: string;
  schedule: string;
  words_at: number;
  by: string;
}

/** The heartbeat's answer to a `GoalRequest`: all goals or the requested one. */
export interface GoalResult {
  verb: string;
  goals: GoalRecord[];
  error: ErrorInfo | null;
}

/** A remark on a goal, published by the heartbeat for the owner: of the check at the time `due_at`, based on the exchanges with the engrams `sources`; `left_out` counts those with untrusted content, which are not read. Only the model of the next check reads it. */
export interface GoalSaid {
  goal_id: string;
  goal: string;
  text: string;
  due_at: number;
  sources: string[];
  left_out: number;
  is_done: boolean;
  model: string;
}

/** A signed permission for one call of one respondent, with these arguments and no others, until `expires_at` in seconds since 1970. `signature` is Ed25519, in hexadecimal digits, over the `statement`, by the key of that id. */
export interface Grant {
  call_id: string;
  respondent_id: string;
  tool: string;
  args_sha256: string;
  expires_at: number;
  key_id: string;
  signature: string;
}

/** The generator's request before a call that needs approval, answered when the decision falls. `mode` is that of the query, if it names one. In a tainted conversation, `sources` names where the untrusted content came from; `refusal` is why the rule of taint would not make the call, `must_ask` why a hook requires a person's decision, `do_not_ask` why the call is denied instead of asking a person. For a call of an agent of the swarm, `agent` is its name, `root_query_id` and `root_session_id` the user's query that started it; for a program's own call, `client` is its name. */
export interface GrantRequest {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  args: Record<string, unknown>;
  mode: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions" | null;
  tainted: boolean;
  sources: string[];
  refusal: string;
  must_ask: string;
  do_not_ask: string;
  agent: string;
  root_query_id: string;
  root_session_id: string;
  client: string;
}

/** The gatekeeper's answer to that: allow, with the grant, or deny, and `why`. `by` names who decided, if it was not the policy. To a question of the model `answer` is the user's reply; for an approved plan `mode` is how the rest of the turn runs. */
export interface GrantResult {
  query_id: string;
  respondent_id: string;
  call_id: string;
  decision: PermissionDecision;
  grant: Grant | null;
  why: string;
  by: string;
  answer: string | null;
  mode: "default" | "acceptEdits" | null;
}

/** A respondent's request to a hook, before or after an action. `data` describes the action: `query` of a turn and a session; `tools` before a model call, `content` and `calls` after one; `tool`, `args`, `level` and `tainted` of a tool call, and its `result` or `error` when it has ended. */
export interface HookRequest {
  query_id: string;
  respondent_id: string;
  hook: string;
  event: "session_start" | "before_turn" | "before_model" | "after_model" | "before_tool" | "after_tool" | "after_turn" | "session_end";
  call_id: string;
  data: Record<string, unknown>;
}

/** A hook's answer to a `HookRequest`: proceed; change, with the new `tools`, `args` or `result` in `data`; deny, or ask a person, and `why`. None of these approves anything: a changed call is checked again. `error` is the reason why the hook could not decide. */
export interface HookResult {
  hook: string;
  decision: "proceed" | "change" | "deny" | "ask";
  why: string;
  data: Record<string, unknown>;
  error: ErrorInfo | null;
}

/** One question of an imported conversation with its answer, which is empty if there was none. Times are seconds since 1970, None where the file has none; `model` is the one that has answered there. */
export interface ImportedExchange {
  query: string;
  answer: string;
  asked_at: number | null;
  answered_at: number | null;
  model: string;
}

/** Sent by a durable consumer that has finished with these messages. */
export interface JournalAck {
  consumer: string;
  numbers: number[];
}

/** Sent by a process that serves durable consumers: when they are ready, every few seconds, and when the journal has opened. The journal then delivers the unacknowledged messages to this instance. */
export interface JournalAttach {
  consumers: ConsumerClaim[];
}

/** Sent by the journal to one publisher's instance: its messages with these ids are on the disk. `refused` are ids that it cannot accept, for the reason in `error`. */
export interface JournalConfirmed {
  instance: string;
  ids: string[];
  refused: string[];
  error: ErrorInfo | null;
}

/** The journal's answer to `JournalDeadRead`: the latest dead letters, the newest first, and how many there are. */
export interface JournalDeadLetters {
  dead_letters: DeadLetterEntry[];
  count: number;
  error: ErrorInfo | null;
}

/** A client's request for the dead letters: the messages that a consumer does not receive any more. */
export interface JournalDeadRead {
}

/** Sent by the journal to the instance that serves a durable consumer: entry `number` for the `attempt`th time. `frame` is the envelope as it was sent; `after` is the entry of the same session that must begin first, 0 for none. */
export interface JournalDeliver {
  consumer: string;
  instance: string;
  number: number;
  attempt: number;
  after: number;
  frame: string;
}

/** Sent by a process that serves a durable consumer when it ends in order: the journal takes back the deliveries in flight. */
export interface JournalDetach {
  consumer: string;
}

/** The journal's answer to `JournalRead`. There may be more entries if there are `limit` of them, or if `more` is set. */
export interface JournalEntries {
  entries: JournalEntry[];
  more: boolean;
  error: ErrorInfo | null;
}

/** One recorded message. If it is redacted, the payload is missing at the end of its frame. */
export interface JournalEntry {
  number: number;
  committed_at: number;
  redacted: boolean;
  frame: string;
}

/** Sent by a process that serves a durable consumer when a handler has raised: entry `number` is to be delivered again after a while, or to become a dead letter with this `reason`. */
export interface JournalFailed {
  consumer: string;
  number: number;
  attempt: number;
  reason: string;
}

/** Sent by the journal to an instance that another one has replaced: it gets no more deliveries and should end. */
export interface JournalFenced {
  consumer: string;
  instance: string;
}

/** Sent by a process that serves a durable consumer while a requester waits for its work: the journal delivers immediately what has arrived so far. `mark` is the sender's, to tell the answers apart. */
export interface JournalFlush {
  consumer: string;
  mark: number;
}

/** The journal's answer to `JournalFlush`: the messages that arrived for the consumer before that `mark` were delivered, up to the number it takes at a time. */
export interface JournalFlushed {
  consumer: string;
  instance: string;
  mark: number;
}

/** Published by the journal when it starts to serve and after each reconnection: every process then sends unconfirmed messages again and attaches. */
export interface JournalOpened {
}

/** A participant's request for recorded messages: entries above `after`, and below `before` if that is given, that match all conditions; oldest first, or with `before` alone latest first. */
export interface JournalRead {
  subjects: string[];
  correlation_id: string | null;
  correlation_ids: string[];
  session_id: string | null;
  after: number;
  before: number | null;
  limit: number;
}

/** A participant's request to remove payloads from the journal: those of a session, of everything one query caused, and those that mention a text, whichever are given. */
export interface JournalRedact {
  session_id: string | null;
  query_id: string | null;
  mentioned: string | null;
}

/** The journal's answer to `JournalRedact`: how many payloads it has removed, or why it could not. */
export interface JournalRedacted {
  count: number;
  error: ErrorInfo | null;
}

/** A client's request, after the cause of dead letters was repaired, to deliver those with these numbers, or all, again to one consumer or to every consumer that gave them up. */
export interface JournalRedeliver {
  consumer: string | null;
  numbers: number[];
}

/** The journal's answer to `JournalRedeliver`: by consumer, which messages will be delivered again, or why none will. */
export interface JournalRedelivered {
  numbers: Record<string, number[]>;
  error: ErrorInfo | null;
}

/** Sent by a process that serves durable consumers, four times a second while it works: by consumer and number, the attempts in flight. */
export interface JournalWorking {
  attempts: Record<string, Record<string, number>>;
}

/** One background call of a model: it waits, or it is `running`. The id is its purpose and a random part. An `ordered` one waits for users' turns alone; a `patient` one until no conversation continues that it would evict from the server; an `idle` one for a minute without a question. A `restore` loads such a conversation again. */
export interface Lease {
  id: string;
  running: boolean;
  model: string;
  kind: "ordered" | "patient" | "idle" | "restore";
}

/** The claims of one process on a model server, published at each change and twice a second while there are any. `turns` are users' turns under way, which never wait: they are announced at once if a lease is urgent, else if they last. `last_turns` are the seconds since the last user's turn ended, by the server's name of the model, 0 for one under way. A lease that is missing from `leases` has ended. */
export interface LeaseClaim {
  server: string;
  turns: number;
  leases: Lease[];
  last_turns: Record<string, number>;
}

/** The line for one model server, published by the arbiter after each change and twice a second while a lease is in line, by the ids of leases. A `revoked` lease has to stop and waits again; `waiting` is in order. `restore` is the model whose last conversation background calls have evicted: the process that had it loads it again. */
export interface LeaseState {
  server: string;
  slots: number;
  turns: number;
  granted: string[];
  revoked: string[];
  waiting: string[];
  restore: string;
}

/** The memory, when a judgement of an answer is noted at its engram: score, sentiment or winner; when a user has pinned it (1) or taken the pin out (0); or when a user has a note hold again (restored). */
export interface MemoryAnnotated {
  engram_id: string;
  query_id: string;
  respondent_id: string;
  what: "score" | "sentiment" | "winner" | "pinned" | "restored";
  value: number | string | null;
}

/** Published by the memory when a model has classified an exchange. `facts` are the stored ones, `refused` has the reason for each other one. */
export interface MemoryClassified {
  engram_id: string;
  query_id: string;
  status: "classified" | "unparsed";
  intent: string | null;
  entities: string[];
  facts: FactRecord[];
  refused: string[];
  model: string;
}

/** Published by the memory when a user has had an engram deleted: every participant deletes what it stores of that exchange. */
export interface MemoryDeleted {
  engram_id: string;
  query_id: string;
  respondent_id: string;
}

/** The memory, when an exchange is safely in its store; its words can be found. */
export interface MemoryIngested {
  engram_id: string;
  query_id: string;
  respondent_id: string;
}

/** Published by the memory soon after a query is received, unless its user's words are not to be remembered: the exchanges of other sessions that clearly fit the question, best first, at most three, often none. Statements that no longer hold are not among them. It is not recorded: its content is stored only in the memory. */
export interface MemoryRecalled {
  query_id: string;
  hits: RecalledEngram[];
}

/** The request of a tool or a frontend to the memory: search (`query`, `limit`, `not_session`, `not_since`), list (`cursor` or `before`, `limit`, `only` some of them), get, delete, pin, unpin (`engram_id`), notes (the assistant's current ones; `history`: also the others), restore (one of them: `engram_id`), facts (`history`: also those that no longer hold), confirm_fact, drop_fact (`fact_id`, of an unconfirmed one), write_fact (one of `edits`: in place of `fact_id`, or a new one), repeated (`of_session`: the engrams elsewhere that had recalled content of it; `engram_id`: those that had recalled that one), export (`cursor`), embed (`texts`), kinds (the score of the question `query` for each tool that it may ask for, and for none: ""), entries (`cursor`: facts and notes as lines of MEMORY.md), edit (`edits` of those, which are made if it `applies` them, else only checked). A `cursor` is that of the page before. It is not recorded: a user's searches must not outlive the deletion of their results. */
export interface MemoryRequest {
  verb: "search" | "list" | "get" | "delete" | "pin" | "unpin" | "facts" | "confirm_fact" | "drop_fact" | "write_fact" | "repeated" | "export" | "embed" | "kinds" | "notes" | "restore" | "entries" | "edit";
  query: string;
  engram_id: string;
  fact_id: number | null;
  not_session: string | null;
  not_since: number | null;
  before: number | null;
  of_session: string;
  cursor: string;
  only: "pinned" | "rated" | "poor" | "untrusted" | null;
  texts: string[];
  edits: EditRecord[];
  applies: boolean | null;
  history: boolean | null;
  limit: number;
}

/** The memory's answer to that. It is not recorded: its content is stored only in the memory. */
export interface MemoryResult {
  verb: string;
  hits: RecalledEngram[];
  nearest: RecallScore[];
  engrams: EngramRecord[];
  facts: FactRecord[];
  unconfirmed: FactRecord[];
  changes: ChangeRecord[];
  repeated_in: string[];
  entries: EntryRecord[];
  outcomes: OutcomeRecord[];
  lines: string[];
  pinned: string[];
  left_out: string[];
  vectors: number[][];
  kinds: Record<string, number>;
  embedded_by: string;
  cursor: string;
  more_before: number | null;
  degraded: string[];
  error: ErrorInfo | null;
}

/** Published by the model manager while it pulls a model: at each new `status`, at most twice a second between, and at the end. `completed` and `total` are bytes of the current file. `state` is running, done, stopped or failed. */
export interface ModelProgress {
  model: string;
  state: "running" | "done" | "stopped" | "failed";
  status: string;
  completed: number | null;
  total: number | null;
  error: ErrorInfo | null;
}

/** An available model. `id` is the name to choose it by, `provider` its server's name in the settings, `server` the kind of that server, `size` in bytes if known, `path` that of its GGUF file. `capabilities` are empty and `loaded` is None if the server does not report them; `memory` is that of a loaded one, in bytes. `chat` says that a query can choose it; if not, `unfit` is a sentence with the reason. The `default` one answers if a query chooses none, the `current` one does so from the next start on. */
export interface ModelRecord {
  name: string;
  server: "ollama" | "llama_server" | "openai";
  size: number | null;
  path: string | null;
  current: boolean;
  id: string;
  provider: string;
  capabilities: string[];
  loaded: boolean | null;
  chat: boolean;
  unfit: string;
  default: boolean;
  memory: number | null;
}

/** A frontend's request: which models there are (list), the model of a name that a query has chosen (find), to pull one (pull), to stop a pull (stop), to make one the default (use), or to have it in the memory of its server (load) or no longer (unload). `model` is its name; for use also the path of a GGUF file, for pull where to get it. */
export interface ModelRequest {
  verb: "list" | "find" | "pull" | "stop" | "use" | "load" | "unload";
  model: string;
}

/** The answer of the model manager. For list: the models, the pulls under way and those that ended since the start, and in `note` why a server could not be asked. For pull and stop: that pull. For the others: the model, as `models`. `chosen` is the model that answers from the next start on, as provider/model; `at_once` means that it answers already. */
export interface ModelResult {
  verb: string;
  models: ModelRecord[];
  pulls: ModelProgress[];
  chosen: string;
  at_once: boolean;
  note: string;
  error: ErrorInfo | null;
}

/** One call of a model: times of the request, the first token and the end, in seconds since 1970, the seconds of `thinking` in between, and its tokens. Without `model` the call was interrupted; `server` is the one that answered, where a model has several. */
export interface ModelSpan {
  started: number;
  first_token: number | null;
  ended: number;
  thinking: number;
  prompt_tokens: number;
  completion_tokens: number;
  model: string;
  server: string;
}

/** The cost of model calls that produced no answer, published by the participant that made them: the purpose (critic, classifier, summary, title, restore, judge_test, classifier_test, or a routine of reflection), calls, tokens and seconds, and for a routine a short description of the result (`outcome`). `about` is the goal that was checked, `server` the name of the one that answered, where a model has several. */
export interface ModelUsed {
  purpose: string;
  model: string;
  prompt_tokens: number;
  completion_tokens: number;
  seconds: number;
  calls: number;
  outcome: string;
  about: string;
  server: string;
}

/** A thought of the inner monologue, about the exchanges with the engrams `sources`; `left_out` counts those with untrusted content, which are not read. No model reads it. */
export interface MonologueThought {
  thought_id: string;
  text: string;
  sources: string[];
  left_out: number;
  model: string;
}

/** The order of a new job. `schedule` is a cron expression, `at` a time, `in` a delay or `every` interval, in that time zone or the one of the settings. `missed` says how times are handled that passed while LoCAL2 did not run: one run for all of them, one for each, or none. Without `session_id` each run is a separate conversation. None means the default of the settings. */
export interface NewJob {
  prompt: string;
  schedule: string;
  name: string;
  time_zone: string | null;
  missed: "once" | "all" | "none";
  session_id: string | null;
  mode: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions" | null;
  max_runs_a_day: number | null;
  max_tokens_a_day: number | null;
}

/** The effect of an edit on the entry `before`; `why` is its error. It is a conflict if the memory has changed the entry since, too: then the entry stays as it is. */
export interface OutcomeRecord {
  line: number;
  kind: "fact" | "note";
  what: "added" | "changed" | "removed" | "conflict" | "refused" | "nothing";
  before: string;
  text: string;
  why: string;
}

/** A statement of an engram that no longer holds; `values` are what the user said instead, none if that was deleted. `engram_ids` are the engrams with all of this. */
export interface OutdatedFact {
  slot: string;
  value: string;
  superseded_at: number;
  values: string[];
  engram_ids: string[];
}

/** The critic's comparison of two respondents' answers to a query. `winner` is null with a status that says why. `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie, unless the judge's probabilities are known: then `preferred`, the mean probability of A over both orders, decides. */
export interface PairwiseResult {
  query_id: string;
  winner: "A" | "B" | "tie" | null;
  order_consistent: boolean | null;
  preferred: number | null;
  status: "graded" | "unparsed" | "failed" | "skipped" | "judge_unfit";
  feedback: string;
  rubric: string;
  judge: string;
  self_judged: boolean;
  session_id: string | null;
}

/** A frontend's request to start, stop or restart a participant; `name` is its name in the supervisor or the settings. */
export interface ParticipantRequest {
  verb: "start" | "stop" | "restart";
  name: string;
}

/** The supervisor's answer to a `ParticipantRequest`: the state of the `child` afterwards, or in `error` the reason why nothing was done. It is sent before a restart of the API, which could not receive it afterwards. */
export interface ParticipantResult {
  verb: string;
  child: ChildStatus | null;
  error: ErrorInfo | null;
}

/** The status of a participant, published every five seconds and within one second of a change: state, counters of sent messages, and subscriptions. */
export interface ParticipantStatus {
  name: string;
  kind: string;
  pid: number;
  instance: string;
  state: "starting" | "ready" | "stopping";
  child: string;
  inflight: number;
  counters: Record<string, number>;
  details: Record<string, string>;
  last_seq: Record<string, number>;
  subscriptions: Record<string, string>;
  children: ChildStatus[];
}

/** The decision about a tool call: allow, ask a person, or deny. */
export type PermissionDecision = "allow" | "ask" | "deny";

/** A frontend's request: pending approvals (list), a decision (decide: `call_id`, `decision`, `by`, `answer`, `mode`), the grants (remembered), or to revoke one (forget: `grant_id`). With `of_user` only those of that user. */
export interface PermissionRequest {
  verb: "list" | "decide" | "remembered" | "forget";
  of_user: string | null;
  call_id: string;
  decision: "allow" | "allow_session" | "deny";
  by: string;
  answer: string | null;
  mode: "default" | "acceptEdits" | null;
  grant_id: number;
}

/** The gatekeeper's answer to that. */
export interface PermissionResult {
  verb: "list" | "decide" | "remembered" | "forget";
  waiting: ApprovalRequest[];
  remembered: RememberedGrant[];
  error: ErrorInfo | null;
}

/** A plan, published by a respondent when its model proposes it. The user's approval is requested by `approval.request` under the same call_id. */
export interface PlanCreated {
  query_id: string;
  respondent_id: string;
  call_id: string;
  title: string;
  steps: string[];
}

/** Published by a respondent when its model begins, ends or drops a step of the approved plan: `index` from 0, in the plan of that `call_id`. */
export interface PlanStep {
  query_id: string;
  respondent_id: string;
  call_id: string;
  index: number;
  state: "open" | "doing" | "done" | "dropped";
}

/** Published by the generator when the journal has delivered a query to it; again for each repeat of a running query. */
export interface QueryAccepted {
  query_id: string;
  respondent_id: string;
  attempt: number;
}

/** A frontend's request to stop an answer. */
export interface QueryCancel {
  query_id: string;
}

/** Published by the generator when a query ends without an answer: refused, cancelled while it waited, or given up. */
export interface QueryFailed {
  query_id: string;
  respondent_id: string;
  attempt: number;
  error: ErrorInfo;
}

/** Published by a frontend when a person asks, or by the swarm when a model gives an agent a task (`task`). `history` replaces the session's own history, and the turn is not added to a session; `continued` is what followed the question there: calls of the client's functions, and their results. `origin` is the source of the question; `tainted` means that it is not in the user's own words. `job_id` is the job of `cron` of which it is a run. */
export interface QueryReceived {
  query_id: string;
  query: string;
  attachments: string[];
  incognito: boolean;
  history: Record<string, unknown>[] | null;
  continued: Record<string, unknown>[];
  options: AnswerOptions | null;
  origin: string;
  tainted: boolean;
  session_id: string | null;
  task: AgentTask | null;
  job_id: string;
}

/** One engram of a search. `similarity` is the cosine of question and exchange, null if only words were searched; `parts` are the parts of `relevance`: if `fused` is below `threshold`, it was not good enough. Its age is null if it was not stored; `outdated` says that one of its statements no longer holds. */
export interface RecallScore {
  engram_id: string;
  relevance: number;
  similarity: number | null;
  parts: Record<string, number>;
  asked_at: number | null;
  age_seconds: number | null;
  outdated: boolean;
}

/** An engram found by a search, best first. `similarity` is the cosine of question and exchange, null if only words were searched; `parts` are the parts of `relevance`, by name. */
export interface RecalledEngram {
  engram_id: string;
  query_id: string;
  respondent_id: string;
  session_id: string;
  query: string;
  answer: string;
  origin: string;
  asked_at: number;
  pinned: boolean;
  score: number | null;
  sentiment: number | null;
  winner: "A" | "B" | "tie" | null;
  superseded_by: string | null;
  recalled: string[];
  intent: string | null;
  entities: string[];
  tainted: boolean;
  note_of: string | null;
  cut: boolean;
  relevance: number;
  similarity: number | null;
  parts: Record<string, number>;
  folded: string[];
  successor_of: string | null;
  outdated: OutdatedFact[];
}

/** An exchange of an earlier conversation in the prompt, shortened. `asked_at` is in seconds since 1970; `origin` is that of its engram; `tainted` means that it may contain untrusted content. */
export interface RecalledExchange {
  engram_id: string;
  query: string;
  answer: string;
  asked_at: number;
  origin: string;
  tainted: boolean;
}

/** A user's grant for a whole conversation: for the call with these arguments, or of a tool for files all on that path. */
export interface RememberedGrant {
  grant_id: number;
  session_id: string;
  tool: string;
  args: Record<string, unknown>;
  decided_at: number;
}

/** The answer to a query and everything that led to it, published by the generator when a turn ends. */
export interface ResponseGeneration {
  query_id: string;
  respondent_id: string;
  status: "answered" | "cancelled" | "failed";
  query: string;
  answer: string;
  cut_off: boolean;
  thinking: string;
  tool_calls: ToolCallRecord[];
  client_calls: ClientCall[];
  model: string;
  prompt: string;
  profile: string;
  incognito: boolean;
  in_history: boolean;
  remember: boolean;
  usage: UsageInfo;
  degraded: string[];
  tainted: boolean;
  origin: string;
  own_words: boolean;
  error: ErrorInfo | null;
  session_id: string | null;
  generator_id: string;
  agent: string;
}

/** The present reward of an answer, 0 for none, sent by the reward service to the answer's respondent. It replaces any earlier one of the same answer. */
export interface RewardEvent {
  query_id: string;
  respondent_id: string;
  reward: number;
  source: "user";
  rated_at: number;
}

/** The state of a routine. `why` says what it waits for, `problem` its latest problem; `read_until` is the time of the last exchange that it has read, `done_at` its last run, both in seconds since 1970, and `tokens_today` its use of `tokens_per_day`. */
export interface RoutineRecord {
  is_on: boolean;
  why: string;
  problem: string;
  done_at: number | null;
  read_until: number | null;
  tokens_today: number;
  tokens_per_day: number;
}

/** A frontend's request about a routine: report its state (status), run it now (now), or switch it on or off, also across restarts. */
export interface RoutineRequest {
  verb: "status" | "now" | "on" | "off";
  routine: "dreamer" | "monologue" | "heartbeat";
}

/** The answer of `reflection` to a `RoutineRequest`: the state of the routine afterwards. */
export interface RoutineResult {
  verb: string;
  state: RoutineRecord;
  error: ErrorInfo | null;
}

/** A frontend, for an owner who tries the web search. */
export interface SearchTrial {
  query: string;
}

/** The answer to that: the text that a model would read, the addresses in it, and the provider that answered; or why there is none. */
export interface SearchTrialResult {
  provider: string;
  text: string;
  sources: string[];
  error: ErrorInfo | null;
}

/** Published by the generator when a user continues from an earlier turn of a session. `session_id` begins with the turns of `branched_from` before the query `before`, or up to the query `through`, of which the other is empty; these are not published again. It is another version of the conversation `version_of`, or a separate conversation if that is empty; None in messages of earlier releases. */
export interface SessionBranched {
  session_id: string;
  branched_from: string;
  before: string;
  through: string;
  version_of: string | null;
  incognito: boolean;
  branched_at: number;
}

/** Published by the generator when a user has changed a session's title, pin, settings, folder or tags, or has archived it. Without `title` the session is named after its first query. */
export interface SessionChanged {
  session_id: string;
  title: string | null;
  pinned: boolean;
  settings: SessionSettings | null;
  folder: string | null;
  tags: string[];
  archived: boolean;
  changed_at: number;
}

/** Published by the generator when a session was deleted or an incognito session has ended. Every participant then deletes what it stores of the session. */
export interface SessionDeleted {
  deleted_session_id: string;
}

/** Published by the generator when a user has imported a conversation from a file. `source` is the program that it is from, and `origin_id` its id there. Its exchanges are not published again; all of them are untrusted content. */
export interface SessionImported {
  session_id: string;
  source: string;
  origin_id: string;
  title: string;
  exchanges: ImportedExchange[];
  imported_at: number;
}

/** The settings of one conversation, as its user has chosen: sampling, a limit on the answer's tokens, and `instructions` that the system prompt contains; None or empty means the default. `profile` is the name of the profile that a frontend sends with the conversation's questions. */
export interface SessionSettings {
  profile: string;
  temperature: number | null;
  top_p: number | null;
  max_tokens: number | null;
  instructions: string;
}

/** Published by the generator when the `model` has made a title of the first exchange of a session, which is that of `query_id`. A title of the user's own (`session.changed`) takes its place. */
export interface SessionTitled {
  session_id: string;
  query_id: string;
  title: string;
  model: string;
}

/** One skill with its status: `ready`, `broken`, `incomplete` without the programs in `missing`, `unapproved` in its present version, or `hidden` by a skill of the same name in an earlier place. `place` is where it is stored: settings, extra or workspace; `tools`, for a frontend, is the state of the tools that it brings: approved, not approved, changed since, or a problem. */
export interface SkillRecord {
  name: string;
  status: "ready" | "broken" | "incomplete" | "unapproved" | "hidden";
  place: "settings" | "extra" | "workspace";
  folder: string;
  description: string;
  error: string;
  missing: string[];
  compatibility: string;
  license: string;
  tools: string;
}

/** A request about skills: a respondent asks for the `ready` ones, a frontend for the `list` of all or to `show` one with its text. The dreamer proposes (`propose`, `by`) new `instructions` for a usable skill, or a new skill with a `description`; nothing changes before the owner has approved it. */
export interface SkillRequest {
  verb: "ready" | "list" | "show" | "propose";
  name: string;
  description: string;
  instructions: string;
  by: string;
}

/** The answer to a `SkillRequest`. `places` are the folders that are searched for skills, the user's own first; `text` is that of the requested skill, `files` its other files; `proposed` says whether a proposal waits for the owner now. */
export interface SkillResult {
  verb: string;
  skills: SkillRecord[];
  places: string[];
  text: string;
  files: string[];
  proposed: boolean;
  error: ErrorInfo | null;
}

/** Published when a skill was added, removed or changed: the names of the usable skills, and of the others. Descriptions are not included, because a prompt is built only from answers to requests (`skills.request.ready`). */
export interface SkillsChanged {
  ready: string[];
  others: string[];
}

/** One task of a todo list, and its state. */
export interface TodoItem {
  text: string;
  state: "open" | "doing" | "done" | "dropped";
}

/** A to-do list, complete and in order, published by a respondent when its model has written it. */
export interface TodoUpdated {
  query_id: string;
  respondent_id: string;
  call_id: string;
  items: TodoItem[];
}

/** A tool is about to begin a call that changes something. Published only by a system that another machine can continue: it is recorded there before the call begins. */
export interface ToolBegins {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  args: Record<string, unknown>;
}

/** One tool call in the record of an answer. `made_by` is the respondent that made it, if another one; `tainted` means that its result taints the session, `folder` names the folder that the owner would have to trust to avoid that, `after_taint` that untrusted content was in front of the model that made it. */
export interface ToolCallRecord {
  call_id: string;
  tool: string;
  args: Record<string, unknown>;
  result: string | null;
  error: ErrorInfo | null;
  sources: string[];
  links: string[];
  tainted: boolean;
  folder: string;
  undoable: boolean;
  whole: Record<string, string | number> | null;
  recalled: RecallScore[];
  duration_ms: number;
  after_taint: boolean;
  made_by: string;
  denied_by: string;
}

/** The state of work that continues after its tool call, published at its begin and at its end: then with `outcome`, a sentence, and all of its output. */
export interface ToolJob {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  job: string;
  state: "running" | "ended";
  command: string;
  outcome: string;
  output: string;
}

/** A piece of a running tool's output, at most four times a second: the output from the byte `start` on. A piece longer than 8 kB is cut to its end; the result has all of it. */
export interface ToolProgress {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  start: number;
  text: string;
}

/** The generator's request to execute a tool call of the model. `call_id` is `query_id:step:index`, the same in every attempt. `shown_since` (seconds since 1970) is the time before which the exchanges of the session are no longer in the model's context; None if all of them are. */
export interface ToolRequest {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  args: Record<string, unknown>;
  same_host: boolean;
  tainted: boolean;
  shown_since: number | null;
  grant: Grant | null;
}

/** A tool's answer to a call: either `result` or `error`. `sources` are the addresses that the text came from, `links` those that it links to; `tainted` says that the result of a trusted tool contains untrusted content, and `folder` names the folder that the owner would have to trust for it not to be untrusted. */
export interface ToolResult {
  query_id: string;
  respondent_id: string;
  call_id: string;
  tool: string;
  result: string | null;
  error: ErrorInfo | null;
  sources: string[];
  links: string[];
  tainted: boolean;
  folder: string;
  undoable: boolean;
  whole: Record<string, string | number> | null;
  recalled: RecallScore[];
  duration_ms: number;
}

/** The description of a tool, published at its start and on request: its text for the model, and how its calls are treated. */
export interface ToolSchema {
  tool: string;
  description: string;
  parameters: Record<string, unknown>;
  effect: "none" | "read" | "write";
  safety: "L0" | "L1" | "L2";
  category: "read" | "write" | "search" | "shell" | "web" | "git" | "data" | "meta" | "memory";
  repeatable: boolean;
  timeout_seconds: number;
  rubric: string;
  replaces: string;
  trusted: boolean;
  sends_out: boolean;
  users: string[] | null;
}

/** A participant's request for the schemas of all tools; every tool answers with its `ToolSchema`. */
export interface ToolSchemaRequest {
}

/** The use of each limit of a turn: rounds of tool calls, calls, bytes of results, and tokens. */
export interface TurnTotals {
  steps: number;
  max_steps: number;
  calls: number;
  max_calls: number;
  output_bytes: number;
  max_output_bytes: number;
  tokens: number;
  max_tokens: number | null;
}

/** The usage of a turn: tokens of all calls, seconds by the server's own names, the last prompt's `context`, each call by itself, and the `totals` against the turn's limits if tools were called. */
export interface UsageInfo {
  prompt_tokens: number;
  completion_tokens: number;
  durations: Record<string, number>;
  context: ContextGauge | null;
  steps: ModelSpan[];
  totals: TurnTotals | null;
}

/** Published by the memory when the lines of a user change that are in every prompt (current facts and pins), and at its start for each user who has any. It does not hold the lines: participants request them (`memory.request.facts`). */
export interface UserFacts {
  of_user: string;
}

/** A user's rating of an answer, published by a frontend; the latest rating of an answer counts, null withdraws it. */
export interface UserFeedback {
  query_id: string;
  respondent_id: string;
  rating: -1 | 1 | null;
  comment: string;
  rated_at: number;
}

/** The body of POST /sessions/{session_id}/branch: the branch has the turns `before` a query, or those up to and with the query `through`. Without a session_id it gets a fresh one. A `version` is listed together with the conversation that it is a version of. */
export interface BranchBody {
  before?: string | null;
  through?: string | null;
  session_id?: string | null;
  version?: boolean;
}

/** The part of the bus that a stream carries: subjects, families and patterns, with payloads or only their sizes. Each event has as `matches` those of the `filters` that match it. */
export interface BusBody {
  subjects?: string[];
  payload?: "none" | "full";
  filters?: string[];
}

/** The body of POST /sign-in/codes: whether the code is for a `link` or to be typed. */
export interface CodeBody {
  link?: boolean;
}

/** The body of POST /approvals/{call_id}. `answer` is for a question of the model, or a comment on a plan; `mode` is how the rest runs once a plan is approved; `by` names the frontend. */
export interface DecisionBody {
  decision: "allow" | "allow_session" | "deny";
  answer?: string | null;
  mode?: "default" | "acceptEdits" | null;
  by?: string;
}

/** The body of PUT /mcp/servers/{name}: the entry as in mcp.json. */
export interface EntryBody {
  entry: Record<string, unknown>;
}

/** The body of POST /memory/facts and PUT /memory/facts/{fact_id}: what the fact is about, its value, and from and until which days it holds, as 2026-11-27. Without `value` the fact ends. */
export interface FactBody {
  slot: string;
  value: string;
  holds_from?: string;
  holds_until?: string;
}

/** The body of POST /feedback. The latest rating of an answer counts; null withdraws it. */
export interface FeedbackBody {
  query_id: string;
  rating: -1 | 1 | null;
  comment?: string;
  respondent_id?: string;
}

/** The body of POST /goals; `by` names the frontend. Without a schedule the goal is checked once a day. */
export interface GoalBody {
  text: string;
  schedule?: string;
  by?: string;
}

/** The body of PATCH /goals/{goal_id}: a new state, or in `seen` the time `words_at` of the remark that was read. */
export interface GoalChangeBody {
  state?: "done" | "dropped" | "active" | null;
  seen?: number | null;
  by?: string;
}

/** The body of POST /hooks: one hook as in hooks.yaml. */
export interface HookBody {
  name: string;
  events: ("session_start" | "before_turn" | "before_model" | "after_model" | "before_tool" | "after_tool" | "after_turn" | "session_end")[];
  tools?: string[];
  command?: string[];
  script?: string;
  seconds?: number;
  on_failure?: "open" | "closed";
  trusted?: boolean;
}

/** The body of POST /cron and of PUT /cron/{job_id}; `by` names the frontend. */
export interface JobBody {
  prompt: string;
  schedule: string;
  name?: string;
  time_zone?: string | null;
  missed?: "once" | "all" | "none";
  session_id?: string | null;
  mode?: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions" | null;
  max_runs_a_day?: number | null;
  max_tokens_a_day?: number | null;
  by?: string;
}

/** The body of PATCH /cron/{job_id}. */
export interface JobChangeBody {
  enabled: boolean;
}

/** The body of PATCH /sessions/{session_id}; a title of null gives the session its automatic title back, a folder of null takes it out of its folder. All `settings` are replaced together; null gives it the defaults. */
export interface LabelsBody {
  title?: string | null;
  pinned?: boolean;
  settings?: local__generator__routes__SettingsBody | null;
  folder?: string | null;
  tags?: string[];
  archived?: boolean;
}

/** The body of POST /sessions/change: the change for all of these sessions. */
export interface ManyChangedBody {
  session_ids: string[];
  pinned?: boolean;
  folder?: string | null;
  archived?: boolean;
  add_tags?: string[];
  remove_tags?: string[];
}

/** The body of POST /sessions/delete. */
export interface ManyDeletedBody {
  session_ids: string[];
}

/** The body of POST /memory/file: the whole text, and whether its changes are to be applied. */
export interface MemoryFileBody {
  text: string;
  apply?: boolean;
}

/** A model: its name in Ollama, the path of a GGUF file, or to pull it where it lies. */
export interface ModelBody {
  name: string;
}

/** The body of POST /models/check: a model as /models names it. */
export interface ModelCheckBody {
  name: string;
}

/** The body of POST /mcp/servers/read: the text that was copied. */
export interface PastedBody {
  text: string;
}

/** The body of POST /pictures: the http or https address of a picture. */
export interface PictureBody {
  url: string;
}

/** The body of a decision about a proposed change: approve it, with the `digest` of the proposal that was shown, or reject it. */
export interface ProposalBody {
  decision: "approve" | "reject";
  digest?: string | null;
}

/** The body of POST /query. Without a session_id the query is a session by itself. `model` and `settings` are those of the conversation from this query on. */
export interface QueryBody {
  query: string;
  attachments?: string[];
  query_id?: string | null;
  session_id?: string | null;
  user_id?: string | null;
  incognito?: boolean;
  tools?: ToolsBody | null;
  mode?: "default" | "plan" | "acceptEdits" | "dontAsk" | "bypassPermissions" | null;
  profile?: string | null;
  model?: string | null;
  settings?: local__generator__routes__SettingsBody | null;
  wait?: boolean;
}

/** The body of POST /journal/redeliver: which dead letters, or with `consumer` alone all of that consumer's. */
export interface RedeliverBody {
  numbers?: number[];
  consumer?: string | null;
}

/** The body of a return to an earlier version. */
export interface RevertBody {
  version: number;
}

/** The body that approves tools: the id under which they were shown. */
export interface ReviewedBody {
  review_id: string;
}

/** The body of POST /web/search. */
export interface SearchBody {
  query: string;
}

/** The body of PUT /secrets/{name}. */
export interface SecretBody {
  value: string;
}

/** The body of POST /sign-in: a one-time code, or a token. */
export interface SignInBody {
  secret: string;
}

/** The body of POST /sign-out: this browser, or `everywhere`. */
export interface SignOutBody {
  everywhere?: boolean;
}

/** The body of POST /skills/{name}/approve: the folder, and the `digest` of the content that was shown. */
export interface SkillApprovalBody {
  folder: string;
  digest: string;
}

/** The body of POST /skills: a new skill in the owner's settings, to be edited there. */
export interface SkillBody {
  name: string;
  description: string;
}

/** The body of POST /skills/{name}/tools/review: the folder of the skill. */
export interface SkillFolderBody {
  folder: string;
}

/** The body of POST /skills/{name}/tools: the folder, and the id under which its tools were shown. */
export interface SkillToolsBody {
  folder: string;
  review_id: string;
}

/** The body of PUT /soul: the whole text. */
export interface SoulBody {
  text: string;
}

/** The body of POST /stream/{stream_id}. Omitted fields stay unchanged. */
export interface StreamBody {
  sessions?: string[];
  queries?: string[];
  list?: boolean;
  participants?: boolean;
  bus?: BusBody | null;
}

/** The body of POST /tools/{tool}/calls. `client` is the program's name as shown in approval requests. A repeated `query_id` refers to the same call. */
export interface ToolCallBody {
  args?: Record<string, unknown>;
  client?: string;
  query_id?: string | null;
}

/** The tools that the model is offered for one answer: those in `allow` (null: all) that are not in `deny`. */
export interface ToolsBody {
  allow?: string[] | null;
  deny?: string[];
}

/** The body of POST /trust: the folder, and the `digest` of its contents as GET /trust/contents showed them. */
export interface TrustBody {
  folder: string;
  digest: string;
}

/** The body of POST /changes/undo: one of a call, a query, and a day, which is one of this machine's time zone. */
export interface UndoBody {
  call_id?: string | null;
  query_id?: string | null;
  day?: string | null;
}

/** The body of POST /users; `again` gives a removed user's name, and what is stored under it, to the same person. */
export interface UserBody {
  name: string;
  again?: boolean;
}

/** How the questions of a conversation are answered. Omitted fields have their default; `profile` is only stored for frontends, which send it with each question. */
export interface local__generator__routes__SettingsBody {
  profile?: string;
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  instructions?: string;
}

/** The body of POST /mcp/servers. `server` is a URL, or a command and its arguments. A value of `env` or `headers` that is a key or a password is given as `secret:NAME`. */
export interface local__mcp__routes__ServerBody {
  name: string;
  server: string[];
  env?: Record<string, string>;
  headers?: Record<string, string>;
  readable?: string[];
  network?: boolean;
}

/** The body of POST /models/servers/try: a model server, as models.yaml would name it, with its key. Google's needs no `url`. */
export interface local__run__routes__ServerBody {
  kind: "ollama" | "openai" | "google_genai";
  url?: string;
  api_key?: string | null;
}

/** The body of PUT /settings/{name}: the `values` that are to change, mappings key by key, and the keys to `reset`, which the user's file has no longer. A key in both is replaced as a whole. */
export interface local__run__routes__SettingsBody {
  values?: Record<string, unknown>;
  reset?: string[];
}

/** An envelope without its payload. */
export interface EnvelopeHeader {
  subject: string;
  id: string;
  sender: string;
  instance: string;
  seq: number;
  correlation_id: string;
  cause_id?: string;
  in_reply_to?: string;
  session_id?: string;
  user_id?: string;
  sent_at: number;
  ttl_ms?: number;
  v: number;
  size?: number;
  payload?: unknown;
}

/** What a query's events carry, by their names. */
export interface QueryEvents {
  accepted: QueryAccepted & { session_id: string };
  state: AgentTransition;
  context: ContextProvided;
  thinking: GenerationThinking & { count?: number };
  token: GenerationToken & { count?: number };
  waiting: GenerationWaiting;
  progress: GenerationProgress;
  tool_call: ToolRequest;
  tool_progress: ToolProgress;
  tool_result: ToolResult;
  approval: ApprovalRequest;
  decision: ApprovalDecision;
  todo: TodoUpdated;
  plan: PlanCreated;
  plan_step: PlanStep;
  response: unknown;
  error: QueryFailed;
  critique: CritiqueResult;
  pairwise: PairwiseResult;
  feedback: UserFeedback;
  snapshot: unknown;
}

/** The messages by their subjects. */
export interface Messages {
  "agent.changed": AgentChanged;
  [subject: `agent.request.${string}`]: AgentRequest;
  [subject: `agent.result.${string}`]: AgentResult;
  "agent.transition": AgentTransition;
  "answer.dialog": AnswerDialog;
  "approval.decision": ApprovalDecision;
  "approval.request": ApprovalRequest;
  [subject: `blob.kept.${string}`]: BlobKept;
  [subject: `blob.part.${string}`]: BlobPart;
  [subject: `blob.put.${string}`]: BlobPut;
  [subject: `blob.request.${string}`]: BlobRequest;
  "bus.dead": BusDead;
  [subject: `bus.declare.${string}`]: BusDeclare;
  [subject: `bus.declared.${string}`]: BusDeclared;
  "bus.gap": BusGap;
  [subject: `bus.probe.${string}`]: BusProbe;
  [subject: `change.request.${string}`]: ChangeRequest;
  [subject: `change.result.${string}`]: ChangeResult;
  [subject: `client.tool.request.${string}`]: ClientToolRequest;
  [subject: `client.tool.result.${string}`]: ClientToolResult;
  "comparison.request": ComparisonRequest;
  "comparison.result": ComparisonResult;
  "context.compacted": ContextCompacted;
  "context.provided": ContextProvided;
  [subject: `conversation.request.${string}`]: ConversationRequest;
  [subject: `conversation.result.${string}`]: ConversationResult;
  "critique.result": CritiqueResult;
  "cron.job.changed": CronJobChanged;
  [subject: `cron.request.${string}`]: CronRequest;
  [subject: `cron.result.${string}`]: CronResult;
  "cron.run": CronRun;
  "dream.made": DreamMade;
  "effect.undone": EffectUndone;
  "generation.progress": GenerationProgress;
  "generation.thinking": GenerationThinking;
  "generation.token": GenerationToken;
  "generation.waiting": GenerationWaiting;
  "goal.changed": GoalChanged;
  [subject: `goal.request.${string}`]: GoalRequest;
  [subject: `goal.result.${string}`]: GoalResult;
  "goal.said": GoalSaid;
  "grant.request": GrantRequest;
  "grant.result": GrantResult;
  [subject: `hook.request.${string}`]: HookRequest;
  [subject: `hook.result.${string}`]: HookResult;
  "journal.ack": JournalAck;
  "journal.attach": JournalAttach;
  [subject: `journal.confirmed.${string}`]: JournalConfirmed;
  "journal.dead_letters": JournalDeadLetters;
  "journal.dead": JournalDeadRead;
  [subject: `journal.deliver.${string}`]: JournalDeliver;
  "journal.detach": JournalDetach;
  "journal.entries": JournalEntries;
  "journal.failed": JournalFailed;
  [subject: `journal.fenced.${string}`]: JournalFenced;
  "journal.hurry": JournalFlush;
  [subject: `journal.given.${string}`]: JournalFlushed;
  "journal.opened": JournalOpened;
  "journal.read": JournalRead;
  "journal.redact": JournalRedact;
  "journal.redacted": JournalRedacted;
  "journal.redeliver": JournalRedeliver;
  "journal.redelivered": JournalRedelivered;
  "journal.working": JournalWorking;
  "model.lease.claim": LeaseClaim;
  "model.lease.state": LeaseState;
  "memory.annotated": MemoryAnnotated;
  "memory.classified": MemoryClassified;
  "memory.deleted": MemoryDeleted;
  "memory.ingested": MemoryIngested;
  "memory.recalled": MemoryRecalled;
  [subject: `memory.request.${string}`]: MemoryRequest;
  [subject: `memory.result.${string}`]: MemoryResult;
  "model.progress": ModelProgress;
  [subject: `model.request.${string}`]: ModelRequest;
  [subject: `model.result.${string}`]: ModelResult;
  "model.used": ModelUsed;
  "monologue.thought": MonologueThought;
  "pairwise.result": PairwiseResult;
  [subject: `participant.request.${string}`]: ParticipantRequest;
  [subject: `participant.result.${string}`]: ParticipantResult;
  "participant.status": ParticipantStatus;
  [subject: `permission.request.${string}`]: PermissionRequest;
  [subject: `permission.result.${string}`]: PermissionResult;
  "plan.created": PlanCreated;
  "plan.step": PlanStep;
  "query.accepted": QueryAccepted;
  "query.cancel": QueryCancel;
  "query.failed": QueryFailed;
  "query.received": QueryReceived;
  "response.generation": ResponseGeneration;
  "reward.event": RewardEvent;
  [subject: `reflection.request.${string}`]: RoutineRequest;
  [subject: `reflection.result.${string}`]: RoutineResult;
  "search.trial": SearchTrial;
  "search.tried": SearchTrialResult;
  "session.branched": SessionBranched;
  "session.changed": SessionChanged;
  "session.deleted": SessionDeleted;
  "session.imported": SessionImported;
  "session.titled": SessionTitled;
  [subject: `skills.request.${string}`]: SkillRequest;
  [subject: `skills.result.${string}`]: SkillResult;
  "skills.changed": SkillsChanged;
  "todo.updated": TodoUpdated;
  "tool.begins": ToolBegins;
  "tool.job": ToolJob;
  [subject: `tool.progress.${string}`]: ToolProgress;
  [subject: `tool.request.${string}`]: ToolRequest;
  [subject: `tool.result.${string}`]: ToolResult;
  "tool.schema": ToolSchema;
  "tool.schema.request": ToolSchemaRequest;
  "memory.facts": UserFacts;
  "user.feedback": UserFeedback;
}

/** What kinds of errors there are. */
export type ErrorKind =
  | "bad_model"
  | "bad_name"
  | "budget_spent"
  | "bus_closed"
  | "bus_not_ready"
  | "busy"
  | "cancelled"
  | "changed"
  | "config"
  | "conflict"
  | "context_overflow"
  | "deleted"
  | "denied"
  | "disk_full"
  | "elsewhere"
  | "fenced"
  | "forbidden"
  | "gone"
  | "invalid"
  | "journal_full"
  | "journal_gone"
  | "link"
  | "malformed"
  | "method_not_allowed"
  | "not_a_file"
  | "not_a_folder"
  | "not_confirmed"
  | "not_found"
  | "not_kept"
  | "outside"
  | "overloaded"
  | "publish_timeout"
  | "quota"
  | "rate_limit"
  | "removed"
  | "stopping"
  | "store_full"
  | "store_gone"
  | "store_locked"
  | "store_read_only"
  | "timeout"
  | "too_large"
  | "too_many_queries"
  | "too_slow"
  | "trace_not_sent"
  | "unauthorized"
  | "unavailable"
  | "unsendable"
  | "unsupported"
  | "unsupported_media_type";
