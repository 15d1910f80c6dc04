/**
 * The shapes that the page's own files name; those of messages and routes are generated beside this file.
 *
 * @typedef {{call_id: string, tool: string, args?: any, result?: any, error?: any, sources?: string[], recalled?: any[],
 *   whole?: any, duration_ms?: number, tainted?: boolean, undoable?: boolean, links?: string[], output?: string}} ToolCall
 *
 * @typedef {{facts: string[], gone: string[], tokens: number, hint?: string, engram_ids: string[], recalled: {engram_id: string, query: string,
 *   answer: string, asked_at: number, origin: string, tainted: boolean}[]}} Context
 *
 * @typedef {{query_id: string, session_id: string, query: string, attachments: any[], status: "open" | "answered" |
 *   "cancelled" | "failed", phase: "sending" | "waiting" | "thinking" | "calling" | "answering" | "ended", answer: string,
 *   thinking: string, context: Context | null, tool_calls: ToolCall[], model: string | null, usage: any, degraded: string[], error: any,
 *   scores: {critique: any, pairwise: any, rating: number | null}, attempt: number, waiting_for: string | null,
 *   reading: {done: number, total: number} | null,
 *   created_at: number | null, finished_at: number | null, copy_of?: string | null}} Turn
 *
 * @typedef {{session_id: string, user_id?: string | null, title: string | null, updated_at: number, started_at: number, turns: number,
 *   pinned: boolean, open: number, incognito: boolean, model?: string | null, folder?: string | null,
 *   tags?: string[], archived?: boolean, settings?: any, conversation?: string, imported_from?: string | null,
 *   branched_from?: {session_id: string, query_id: string} | null}} Session
 */

export {};
