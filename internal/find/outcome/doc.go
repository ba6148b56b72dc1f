// Package outcome records what was shown and what was then used, computes what
// that saved, and decides whether cards may still be shown. It does not depend
// on search.
//
// A [Log] holds one [Event] per selection, per outcome and per finished turn. Everything else
// is computed from a stream of events, with the time as an argument:
//
//   - [Text] is one selection as lines for people;
//   - [Summarise] returns the metrics and the tokens saved;
//   - [Insights] returns what was saved per day, in tokens and in money;
//   - [Priors] is what was learned about each capability;
//   - [Assign] and [Compare] are an experiment with two configurations;
//   - [Telemetry] watches whether calls succeed.
//
// [Gate] says whether a selection may enter a prompt, and [Switch] stops cards
// that trigger too often. All of this is awareness: when the log cannot be
// written or read a turn goes on, and [Log.Health] says what is wrong.
//
// The words of a showing: an item is selected when it was chosen; shown when it
// also went into the prompt as a brief, a card or a full text; merely being
// named in the map is neither. A showing is used if a call to that capability
// follows in the same session before it is selected again, and unused if not.
//
// A card, a skill and any other text cannot be called. It is used if a tool that
// it names is called in the turn for which it was selected, that is, before the
// session's next message, or if it is itself read with describe_capability. Of a
// text that went into the prompt whole and names no tool nothing can be told: it
// is not judged, and counts neither as used nor as unused.
package outcome
