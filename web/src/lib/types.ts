// What the HTTP API says, as the page reads it. Every text in it came from
// outside and is drawn as text, never as markup.
import type { Mark } from "./marks";

export interface Offered { ref: string; window?: number; priced: boolean; input?: number; output?: number } // dollars for a million tokens
export interface Provider { name: string; url: string; key?: string; keySet?: string; local: boolean; answers: boolean; models?: Offered[] }
export interface Found { // GET /api/v1/setup
  model: string; providers: Provider[]; skills: number; apis: string[];
  clients: { name: string; title: string; servers: number; connected: boolean }[];
}
export interface Me {
  id: string; tenant?: string; name?: string; operator: boolean; signOut: boolean;
  version: string; workspace: string; profile: string; tokenizer: string;
  model: string; // empty: none is configured
  window?: number; // tokens of the model's
  modes: string[]; intents: string[];
  catalog: Stats;
  own: number; // tools of the program itself: lists and the graph have them beside the catalog's
  fault?: string; // why nothing may be called now
  demo?: { text: string; shows: string }[]; // requests that the scripted model knows; absent: this is not the demo
}
export interface Stats {
  capabilityCount: number; active: number; available: number; quarantined: number; shadowed: number; errors: number;
  graphNodes: number; graphEdges: number; indexVersion: number;
}
export interface Problem { title: string; status: number; code: string; detail: string; rule?: string; fix?: string; ticket?: string }

// ---- finding
export interface Piece { id: string; score: number; tokens: number; text: string; why?: string[] }
export interface Found {
  query: string; map: string; briefs: Piece[]; cards?: Piece[]; fulls: Piece[]; skipped: { id: string; reason: string }[];
  tokens: { map: number; briefs: number; cards?: number; fulls: number; total: number };
  fit: number; low_confidence?: boolean /* below discovery.lowConfidence: only the best hit is shown, and may not fit */; nearest?: { id: string; score: number }[];
  took_us: number; embed_us?: number; graph_us: number; budget: number; found: number; indexed: number; degraded: string[];
  rollout: { inject: boolean; reason?: string; cards: boolean; cardsReason?: string; experiment?: string; variant?: string };
}
export interface Override { // each as the key of ken.yaml; what is missing is as ken.yaml says
  tier1TopK?: number; tier2TopK?: number; tier1MinRelevance?: number; tier1TailRelevance?: number;
  tier0TokenBudget?: number; tier1TokenBudget?: number; tier2TokenBudget?: number; maxTokens?: number; totalTokenBudget?: number;
  useGraphReranking?: boolean; graphBoostFactor?: number; tier2MinRelevance?: number; stickyTopK?: number;
  learnedWeight?: number; // no key of ken.yaml: how much of what was learned counts; 0 nothing, 1 as learned, at most 10
}
export interface PlayRequest { // POST /api/v1/play
  q: string; before?: { role: "user" | "assistant"; text: string }[]; override?: Override;
  filter?: { kinds?: string[]; category?: string; available?: boolean; exclude?: string[] };
  scope?: { session?: string; sessionType?: string; mode?: string; agent?: string; user?: string; userTier?: string; environment?: string };
}
export interface Play { // POST /api/v1/play
  found: Found;
  ranking: { id: string; name: string; kind: string; score: number; shown: boolean; why: string[] }[]; // whatever the floor, best first, at most 20; why it is shown, or "briefs: …" why not
  settings: Required<Override>; // in force, with what was overridden
  defaults: Required<Override>; // as ken.yaml says
}

// ---- catalog
export interface Entry {
  id: string; kind: string; name: string; description: string; category?: string; tags?: string[];
  available: boolean; missing?: string[]; noRunner?: string; state: string; reasons?: string[]; origin?: unknown; trust?: string; version?: string; hasSideEffects?: boolean;
}
export interface Example { id: string; kind: string; name: string; category: string; text: string } // GET /api/v1/examples?limit=: what could be asked for here
export interface SearchAnswer { // GET /api/v1/search
  hits: { id: string; kind: string; name: string; description: string; category: string; state: string; available: boolean; score: number; own?: boolean /* a part of the program */ }[];
  fits: boolean; // false: nothing has this name, and Find is below discovery.tier1MinRelevance; hits are the nearest
  total: number; // that the filters let through
  next?: string; // there is more: ask with after= this
  facets: { kinds: Record<string, number>; categories: Record<string, number>; states: Record<string, number>; moreCategories?: number };
  tookUS: number; degraded: string[];
}
export interface Description extends Entry { // a schema that is no JSON is a text
  detail: { schema?: unknown; body?: string; usage?: string };
  notForModels?: string; // for the operator: why a model is not shown this
}
export interface CatalogList { // GET /api/v1/catalog, with an ETag
  capabilities: Entry[]; problems: LintProblem[]; presets: { name: string; members: string[]; origin: unknown }[]; documents: unknown[]; stats: Stats;
}
export interface Changed { catalog: Stats; changes: { id: string; what: "added" | "updated" | "removed"; from?: string; to?: string; note?: string }[]; complete: boolean /* false: read everything again */ } // GET /api/v1/changes?after=; 204: nothing new
export interface Lint { problems: LintProblem[]; errors: number; warnings: number; note?: string }
export interface Why { id: string; name: string; state: string; available: boolean; why: string[]; related: { id: string; name: string; type: string; weight: number; needs?: boolean }[] }
export interface LintProblem { subject?: string; origin?: { source: string; format: string; path?: string; line?: number; [more: string]: unknown }; code?: string; severity?: string; message: string; fix?: string; [more: string]: unknown }
export interface Graph { // GET /api/v1/graph: columns, so that 6,000 nodes are small
  nodes: { id: string[]; name: string[]; kind: number[]; category: number[]; state: number[] };
  kinds: string[]; categories: string[]; states: string[]; types: string[];
  edges: { from: number[]; to: number[]; type: number[]; weight: number[] };
  version: number; cut: number; // edges that were left out
}
export interface Review { // something that waits for a person's look: an extension, or the tools of an MCP server
  name: string; kind: "extension" | "server"; state: string; why?: string; fix?: string; pending: boolean;
  changes: { what: string; target: string; place?: string; old?: string; new?: string; findings?: string[] }[];
  digest: string; // what is accepted is exactly what was seen
}

// ---- talk
export interface SessionHead {
  id: string; title: string; folder?: string; agent?: string; mode?: string; begunBy?: string /* an agent; missing: a person */; created: string; updated: string;
  turns: number; usage: Usage; cost?: number; open?: boolean; running?: boolean;
}
export interface Usage { input: number; output: number; cachedRead?: number; cachedWrite?: number; thought?: number }
export interface SessionList { sessions: SessionHead[]; cut: boolean /* there are more than limit */; problems?: string[] } // GET /api/v1/sessions?limit=, newest first
export interface Session { // GET /api/v1/sessions/{id}?limit=&before=
  head: SessionHead; turns: Turn[]; running: boolean; asked?: Asked[];
  after: string; // the id of the event up to which this is: a turn that runs is not in turns, its events come after this id from "said" on
  older?: number; // earlier turns were left out: ask with before= this
}
export interface TurnRequest { // POST /api/v1/sessions/{id}/turns; 202 TurnAccepted; ?wait=true: 200 TurnEnded; Accept: text/event-stream: the events of this turn
  text?: string; images?: { mime: string; data: string }[]; mode?: string; noMode?: boolean; continue?: boolean;
  override?: Override; delivery?: string; alone?: boolean;
}
export interface TurnAccepted { session: string; events: string } // also of retry; events: the path to follow
export interface TurnEnded { done: TurnEvent & { type: "done" }; asked?: Asked[] }
export interface AnswerRequest { yes?: boolean; text?: string; scope?: "once" | "session" | "always"; covers?: "call" | "prefix" | "tool"; answers?: Record<string, unknown> } // POST …/answers/{asked}: 204; 404 unknown, 409 already answered
export interface Aborted { aborted: boolean } // POST …/abort: whether a turn ran
export interface Rewound { said: string } // POST …/rewind {turn}; what calls have done is not undone
export interface Compacted { before: number; after: number; how: string /* empty: there was nothing to do */; why: string } // POST …/compact
export interface Completions { completions: Completion[] } // GET /api/v1/complete?line=&cursor= (a byte offset)
export interface Turn { // one exchange as it was kept
  turn: number; time: string; said: string; images?: number; command?: boolean;
  items: Item[]; usage?: Usage; cost?: number; end?: string; why?: string; inspectable: boolean;
}
export type Item =
  | { type: "text"; text: string }
  | { type: "thought"; text: string }
  | { type: "call"; id: string; target: string; action?: string; arguments?: unknown; intent?: string; result?: CallResult }
  | { type: "notice"; name: string; text: string };
export interface CallResult { text: string; failed: boolean; kind?: string; handle?: string; images?: number; tookMS?: number; cut?: boolean; job?: string /* the job that it added */ }
export interface Inspection { turn: number; now: boolean /* found anew, because it was not kept */; events: TurnEvent[] }

export interface Call { id: string; target: string; action?: string; arguments?: unknown; intent?: string }
export type TurnEvent =
  | { type: "said"; turn: number; text: string; mode?: string; images?: number } // the first of a turn; text is empty where a turn that is there goes on
  | { type: "selected"; found: Found; added: string[]; rung: string; why: string; tokens: number }
  | { type: "delta"; text?: string; thought?: string }
  | { type: "started"; call: Call }
  | { type: "output"; id: string; text: string }
  | Asked
  | { type: "answered"; id: string; yes: boolean; text?: string }
  | { type: "finished"; id: string; target: string; result: unknown; error?: string; kind?: string; took: number }
  | { type: "intended"; intent: string; justification?: string; chain: string[] }
  | { type: "notice"; name: string; text: string } // name prefix: the cached prefix was broken, and text says why
  | { type: "step"; number: number; usage: Usage; plain: number; cost?: number; stop: string }
  | { type: "done"; session: string; turn: number; reason: string; text: string; usage: Usage; cost?: number; steps: number; calls: number; why?: string }
  | { type: "failed"; problem: Problem } // there was no turn
  | { type: "reset" } // what came in between is no longer known, or something was taken back: read the session again and follow from its after
  | { type: "idle" }; // sent once when a stream begins and no turn runs
export interface Asked {
  type: "asked"; id: string; what: "consent" | "again" | "ask" | "inquiry" | "continue" | "intent";
  call?: Call; ticket?: string; title?: string /* what is asked, in one sentence */; text: string; lines?: Line[]; wide?: boolean; offers?: Offer[]; choice?: string[]; requests?: Record<string, unknown>;
}
export interface Completion { text: string; start: number; end: number; kind: string; description?: string }

// ---- approvals and trail
export interface Line { name: string; text: string; marks?: Mark[] } // marks: parts of text to look at
export interface Ticket {
  id: string; state: string; asked: string; expires: string; mine: boolean; wide: boolean;
  target: string; action?: string; principal: string; session?: string; surface?: string; rule?: string; why?: string; risk?: unknown;
  title: string; // what is asked, in one sentence
  lines: Line[]; // exactly what will run, first
  offers?: Offer[]; // what may be granted, the narrowest first
  answer?: { effect: string; scope: string; covers?: string; by: string; at: string; until?: string; note?: string };
}
export interface Tickets { tickets: Ticket[]; cut: number /* left out by limit */; problems?: string[] } // GET /api/v1/approvals?state=&limit=, newest first
export interface Grants { grants: Grant[]; cut: number; problems?: string[] } // GET /api/v1/grants?limit=, newest first
export interface Offer { scope: string; covers: string; calls: string /* which calls it covers */; text: string /* which calls, and for how long */; examples?: string[] }
export interface Grant { covers?: string; prefix?: string[]; text?: string; examples?: string[]; id: string; scope: string; principal: string; mine: boolean; ticket: string; capability: string; action?: string; session?: string; until?: string; by: string; at: string; note?: string }
export interface TrailRecord { id: string; timestamp: string; level: string; event: string; [more: string]: unknown } // as the trail keeps it: snake_case
export interface TrailPage { records: TrailRecord[]; older?: string; problems?: string[] } // newest first; older: the cursor of the next page, which may turn out empty; a page may have few records and an older: then the search goes on there
export interface Story { records: TrailRecord[]; ticket?: Ticket; result?: { handle: string; session?: string; text?: string; more?: boolean }; problems?: string[] } // oldest first
export interface Proof { id: string; line: string; hashes: string[]; head: string; publicKey: string } // GET /api/v1/audit/{id}/proof
export interface ResultPiece { handle: string; target?: string; made?: string; failed?: boolean; binary?: boolean; text: string; from: number; next?: number; chars: number; left?: string } // GET /api/v1/results/{handle}?session=&from=
export interface Invocation { // POST /api/v1/invoke: line, or target
  line?: string; target?: string; action?: string; arguments?: unknown; session?: string; key?: string; mode?: string; intent?: string;
  asPerson?: boolean; answers?: Record<string, unknown>; state?: string;
}
export interface Invoked { target: string; action?: string; session: string; result: { parts?: unknown[]; failed?: boolean; handle?: string; meta?: Record<string, string> }; cut?: number; took_ms: number }
export type InvokeEvent = // with Accept: text/event-stream
  | { type: "output"; text: string; stderr?: boolean; left?: number }
  | { type: "stage"; percent: number; stage: string } // how far Ken has come with it
  | { type: "progress"; done: number; total?: number; message?: string }
  | ({ type: "result" } & Invoked)
  | { type: "problem"; problem: Problem };
export interface Verified { ok: boolean; chains: { chain: string; state: string; records: number; signed: number; unfinished?: number; problem?: string; file?: string; seq: number; offset: number; notes?: string[] }[]; strays?: string[]; tookMS: number }
export type FeedEvent =
  | { type: "catalog"; version: number; count: number }
  | { type: "approvals"; pending: number }
  | { type: "trail"; record: TrailRecord } // new ones; the same may come again after a reconnect
  | { type: "jobs"; id: string; state: string } // a job of yours changed
  | { type: "reset" }; // records are missing from the feed: read the trail

// ---- jobs
export interface Job { // GET /api/v1/jobs/{id}; …/events streams it as { type: "job" }, each time it changes
  id: string; url: string; events: string; state: string; why?: string; kind?: string;
  target: string; action?: string; arguments?: unknown; session: string; mode?: string; priority: number;
  at?: string; schedule?: string; parent?: string; attempt: number; retries?: number; added: string; started?: string; ended?: string;
  ticket?: string; effect?: string; runs?: number; skipped?: number; last?: string;
  progress?: { done: number; total?: number; message?: string; output?: string; at: string };
  result?: { parts?: Part[]; failed?: boolean; handle?: string; meta?: Record<string, string> }; cut?: number;
}
export interface Jobs { jobs: Job[]; cut: number; problems?: string[] } // GET /api/v1/jobs?state=&parent=&limit=, newest first
export interface Part { text?: string; json?: unknown; data?: string; link?: string; mime?: string } // of a result

// ---- insights
export interface Insights {
  since: string; until: string; tokenizer: string;
  prices: PriceRow[]; // of the models that were used
  totals: Bill; days: ({ day: string } & Bill)[]; // day: 2026-11-15, of the server's zone
  latency: { bounds: number[] /* µs, ascending */; find: number[]; embed: number[]; call: { boundsMS: number[]; counts: number[] }; turn: { boundsMS: number[]; counts: number[] } };
  refusals: { rule: string; count: number }[];
  capabilities: { id: string; shown: number; used: number; failed: number; refused: number; searched: number; tokens: number; p50MS?: number }[];
  notes: string[]; // what is assumed, and what could not be read
}
export interface Bill {
  turns: number; requests: number;
  shownTokens: number; // that Ken added or kept in the prompt for capabilities
  allTokens: number; // that all schemas of the same catalog would have been
  savedTokens: number;
  paid?: number; allPaid?: number; saved?: number; // dollars, where the price is known; allPaid with a cache that never misses
  cachedRead: number; cachedWrite: number; plain: number; output: number;
  selections: number; used: number; calls: number; failed: number; refused: number;
}
export interface PriceRow { model: string; input: number; output: number; cachedRead: number; cacheWrite: number; source: string; own: boolean }

// ---- settings, doctor, evaluation
export interface Setting { key: string; value: string; inForce?: string /* what the running program has, where that is something else: it holds after a restart */; origin: string; writable: boolean; why?: string /* it is not */; about?: string; form?: Form }
export interface Form { type?: string | string[]; enum?: string[]; minimum?: number; maximum?: number; default?: unknown; items?: unknown; [more: string]: unknown } // JSON Schema of a value
export interface Check { name: string; grade: "good" | "warn" | "bad"; message: string; fix?: string }
export interface EvalCase { id: string; query: string; gold: string[]; before?: { role: string; text: string }[]; saved?: string /* missing: somebody wrote the row */ } // POST without saved, and id if you like
export interface EvalCases { cases: EvalCase[]; cut: number; problems: string[] } // GET /api/v1/eval/cases?limit=, newest first
export interface Checkup { // POST /api/v1/eval/checkup: as ken eval --json without cases; 409 busy: another one runs
  capabilities: number; requests: number; first: number; three: number; empty: number; leftOut: number;
  confusable: { id: string; with: string; lost: number; of: number; turns: number; only?: string[] }[];
  improve: { id: string; lost: number; of: number; how: string[] }[];
}
export interface EvalReport { // POST /api/v1/eval {cases?}: as ken eval --json; 409 busy: another one runs
  n: number; oos_n: number; capabilities: number; "ndcg@5": number | null; "recall@1": number | null; "recall@5": number | null; "recall@10": number | null; mrr: number | null;
  abstain: { oos_rate: number | null; in_scope_rate: number | null; floor: number | null }; calibration_error: number | null; p50_us: number | null; p99_us: number | null;
  problems: LintProblem[];
  each: { id: string; query: string; gold: string[]; hits: { id: string; score: number }[]; abstained: boolean; tokens: number; us: number; "ndcg@5": number; "recall@5": number; mrr: number; recall_shown: number }[];
  [measure: string]: unknown;
}

// ---- what is managed on the page
export interface Managed { items: ManagedItem[]; refused?: string /* why programs may not be started from here */; code?: string } // GET /api/v1/managed
export interface ManagedItem {
  name: string; title: string; kind: "server" | "extension" | "api"; state: string; why?: string; fix?: string; place?: string; from?: string; digest?: string;
  tools: number; waiting: number; pending: boolean; login?: boolean; remote?: boolean; added: boolean; fixed?: string /* why it cannot be switched here */;
}
export interface Addition { // POST /api/v1/additions, …/{id}/try, …/{id}/add
  id: string; next?: "secrets" | "try" | "add"; unset?: string; failed?: string; fix?: string; same?: boolean;
  server?: { name: string; from: string; title?: string; description?: string; package?: string; digest?: string; replaces?: string; notes: string[]; login?: boolean; added: boolean; file: string;
    definition: { command?: string; args?: string[]; env?: Record<string, string>; url?: string; headers?: Record<string, string>; profile?: string; read?: string[]; write?: string[]; hosts?: string[] };
    secrets: { name: string; description?: string; set: boolean }[]; tools: { id: string; decision: string; rule?: string; findings?: number }[] };
  package?: { id: string; from: string; commit?: string; sha256: string; steps: { name?: string; argv: string[]; hosts?: string[] }[]; lines: { name: string; text: string }[]; added: boolean; folder: string };
  api?: { name: string; from: string; sha256: string; server?: string; operations: { id: string; method: string; url: string; decision: string; rule?: string; cannot?: string }[]; hosts: { name: string }[]; secrets: { name: string; set: boolean }[]; blocked: string[]; problems: string[]; added: boolean; folder: string };
}
export interface LoginState { state: "none" | "waiting" | "done" | "failed"; address?: string; error?: string } // …/servers/{name}/login
export interface SecretItem { name: string; set: string; shadowed?: boolean; unguarded?: string } // GET /api/v1/secrets
export interface ClientPlan { client: string; title: string; files: string[]; diff: string; servers: string[]; kept: string[]; sealed: string[]; unset: string[]; rules: string[]; refused: string[]; notes: string[]; connected: boolean; digest: string }
export interface Connection { client: string; files: string[]; servers: { name: string; error?: string; fix?: string }[] }
export interface Disconnection { files: { path: string }[]; removed: string[]; secrets: string[]; rules: number; stay: string[]; token: boolean }
