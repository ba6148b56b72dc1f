package engine

import (
	"context"
	"iter"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/account"
	"ken/internal/talk/ask"
	"ken/internal/talk/deliver/offers"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
	"ken/plugin"
)

// Config says what an Engine works with. Door, Sessions and Model are required;
// any other field may be nil. Without Wait the engine does not wait for consent;
// without Keep it refuses what is too large.
//
// Its functions may be called from any number of goroutines.
type Config struct {
	Door     *door.Door
	Sessions *session.Store

	// Model returns the model that a session talks to. It is asked for once a
	// turn, and not for slash commands. The model tells retry before it waits
	// to make a request again; after the turn that does nothing.
	Model func(ctx context.Context, head session.Head, retry Retry) (Model, error)

	// Command reads a slash command. It is asked for texts that begin with a
	// slash; not ok means that the text is meant for the model. An error is
	// told to the person and ends the turn.
	Command func(ctx context.Context, in event.Input) (cmd event.Command, ok bool, err error)

	// Layers give the system prompt of a session that begins, and what a person
	// should know about them.
	Layers func(ctx context.Context, in LayerInput) ([]prompt.Layer, []event.Notice, error)

	// Environment returns what a model should know of where it is: the day, the
	// folder, the mode. It is put beside a message when it is not what the
	// model knows already. Nil: nothing.
	Environment func(in event.Input) string

	// Filters run over the layers, as files of context, after what was found
	// was put among them. What they leave out is out.
	Filters []plugin.ContextFilter

	// Intents give the rules about intents at a surface.
	Intents func(surface string) IntentRules

	// Reads says whether calls of a capability only read, by its class in the
	// rules: neighbours among them run at once. Nil: none does.
	Reads func(*door.Entry) bool

	// Ticket returns what a person must know about a ticket at the desk; Wait
	// waits until it has its answer. An error of the kind Denied or Unapproved
	// says why it was not granted, for the model; any other means that the desk
	// cannot be asked, and the call stays pending.
	Ticket func(ctx context.Context, id string) (event.Ticket, error)
	Wait   func(ctx context.Context, id string) (granted bool, err error)

	// Keep puts away what is too large for a message. The excerpt stands for
	// it and says how to read the rest.
	Keep func(ctx context.Context, k Kept) (excerpt string, err error)

	// CallStatus returns what is kept of an earlier call by its principal, session and
	// key; not ok: nothing is. Nil: nothing ever is.
	CallStatus func(ctx context.Context, call capability.Call) (f CallStatus, ok bool, err error)

	// Ended is called after every turn, with the time it began. The calls of a
	// turn are reported by the code that executes them.
	Ended func(done event.Done, began time.Time)

	// Terms are asked for when a turn begins. Nil: the zero Terms, always.
	Terms func() Terms

	Count tokenizer.Counter // nil: tokenizer.Count
	Now   func() time.Time  // nil: time.Now
}

// Terms are what a turn keeps to from its beginning to its end, whatever is
// changed meanwhile.
type Terms struct {
	Limits   Limits
	System   int                // the most tokens of the system prompt; zero: 8,000
	Delivery model.DeliveryMode // empty: auto
	Fit      prompt.Numbers     // Window zero: the model's own

	// Closed ends a turn in which nothing could be found because finding
	// broke. Otherwise it goes on with what it has.
	Closed bool
}

// Always is a [Config.Terms] that never changes: Terms{…}.Always.
func (t Terms) Always() Terms { return t }

// A Retry is told that a request failed and is made again after a while.
type Retry func(after time.Duration, err error)

// A Model is who answers, and what is known of it.
type Model struct {
	llm.Model
	Name      string // as the provider knows it
	Ref       string // as the caller writes it, for [event.Account.Model]
	Row       model.Row
	Effort    string
	MaxTokens int // of an answer; zero: the provider's default

	Condenser    llm.Model // summarizes a long history; nil: the history is cut
	CondenserRow model.Row
}

// LayerInput is what the layers of a session may depend on.
type LayerInput struct {
	Head      session.Head
	Principal capability.Principal
	Surface   string
	View      door.View
	Delivery  model.DeliveryMode // how tools are delivered
	Document  string             // AGENTS.md of the catalog
	Map       string             // the map of the catalog or, if all tools are sent, the list of everything else
	Intents   IntentRules
}

// IntentRules are the rules about intents at one surface. The zero value asks
// for none.
type IntentRules struct {
	Names []string // that there are; without any the tool is not there

	// Request lets an intent hold for one request to the model only, as the
	// seed has it; otherwise it holds for the turn.
	Request bool

	// Remember takes the last intent of the turn before for the next one.
	Remember bool

	// Consent says whether a person must agree when the model goes from one
	// intent to another. Nil: never.
	Consent func(from, to string) bool

	// Allows says whether calls of a capability may pass under an intent, which
	// is empty where none was declared. It narrows what a wire lets a model
	// write and decides nothing: that is the rules' at the call. Nil: it is not
	// known, and nothing is narrowed.
	Allows func(intent string, e *door.Entry) bool
}

// A CallStatus is what is known of a call whose result was not written down. One that
// neither runs nor has ended may have had its effect, or not.
type CallStatus struct {
	Effect      string // its name in the trail
	Began       time.Time
	Runs, Ended bool
	Result      capability.Result // of one that has ended
	Err         error
}

// Kept is something that is too large for a message.
type Kept struct {
	Principal capability.Principal
	Session   string
	Name      string // what it is: "message"
	Text      []byte
	MIME      string // of what is no text: the excerpt then says only where it is
	Limit     int    // bytes of the excerpt
}

// Limits bound a turn. Zero means the number in the comment, less than zero
// means none.
type Limits struct {
	Steps    int // requests to the model; 50
	Mistakes int // of the model's, one after another; 3
	Repeats  int // of the same call, one after another; 3
	Calls    int // in one answer; 64
	Parallel int // reading calls at once; 8
	Rounds   int // questions of one call; 10

	// After that many requests, tokens or dollars in a turn a person is asked
	// whether to go on; if no person can be asked, the turn ends. Zero: no limit.
	Requests int
	Tokens   int
	Cost     float64

	MessageBytes int // of a person's message, then it is kept and excerpted; 200,000
	ResultBytes  int // of one result; 100,000
	AnswerBytes  int // of one answer of the model's; 4 MiB
	InputBytes   int // of a message, then it is refused; 64 MiB
}

// An Engine has conversations. It is safe for any number of goroutines. It
// holds nothing of a session in which no turn runs.
type Engine struct {
	cfg     Config
	waiters ask.Waiters
	defined offers.Cache
	account *account.Accountant
	tools   tokenizer.Counter // Config.Count for the texts of tools, which remembers
}

// New makes an Engine.
func New(cfg Config) *Engine {
	cfg.defaults()
	e := &Engine{cfg: cfg}
	e.tools = new(account.Counts).Counter(cfg.Count)
	e.account = account.New(cfg.Door, cfg.Count, e.tools)
	return e
}

// Turn takes a message and yields what happens until it is answered. The
// caller aborts by ending ctx or by leaving the loop; either leaves the session
// whole. An error, which is the last thing yielded, means that there was no
// turn: the session is not there, is in use, or cannot be read. Everything that
// happens to a turn itself is told by [event.Done].
//
// One turn at a time runs in a session, over all processes.
func (e *Engine) Turn(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) { e.run(ctx, in, yield) }
}
