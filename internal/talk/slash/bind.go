package slash

import (
	"encoding/json"
	"strings"

	"ken/capability"
)

// Call makes the call that a route stands for: target, action, arguments as a
// JSON object, and a person as the one who asks. Principal, session and the
// rest are the caller's to fill in. The signature is that of the target's
// schema; nil means the route's own, and where that is unknown too, a list of
// words under "args". Numbers and booleans are converted where the signature
// declares them; whether values fit the schema is for the schema to say.
func (r Route) Call(sig *Signature) (capability.Call, error) {
	call := capability.Call{Target: r.Target, Action: r.Action, Origin: capability.ByPerson}
	if sig == nil {
		sig = r.Signature
	}
	var f *Fault
	switch {
	case r.asText && r.Text == "":
		call.Arguments = json.RawMessage("{}")
	case r.asText:
		call.Arguments = object([]argument{{"arguments", quoteJSON(r.Text)}})
	case sig == nil:
		call.Arguments = wordList("args", r.words)
	case sig.Words:
		call.Arguments = wordList(sig.Parameters[0].Name, r.words)
	default:
		b := binder{sig: sig, line: r.line, words: r.words, values: make([][]json.RawMessage, len(sig.Parameters))}
		call.Arguments, f = b.bind()
	}
	if f != nil {
		if f.Fix == "" {
			f.Fix = "write " + usage(r.Command, r.Action, sig)
		}
		return capability.Call{}, refusal(capability.Invalid, r.Command, f)
	}
	return call, nil
}

// A binder assigns the words of a line to the parameters of an action.
type binder struct {
	sig        *Signature
	line       string
	words      []word
	values     [][]json.RawMessage // by parameter; more than one only for lists
	extra      []argument          // of an open signature
	positional []word
	swallowed  string // a flag that took the next word though it need not have
}

func (b *binder) bind() (json.RawMessage, *Fault) {
	for i := 0; i < len(b.words); {
		w := b.words[i]
		switch {
		case w.is("--"):
			if f := b.plain(b.words[i+1:]); f != nil {
				return nil, f
			}
			i = len(b.words)
		case isFlag(w) && (!b.restBegins() || b.knows(w)):
			used, f := b.flag(w, b.words[i+1:])
			if f != nil {
				return nil, f
			}
			i += 1 + used
		case b.restBegins() && b.key(w) == nil:
			if f := b.rest(b.words[i:]); f != nil {
				return nil, f
			}
			i = len(b.words)
		default:
			if f := b.word(w); f != nil {
				return nil, f
			}
			i++
		}
	}
	if f := b.place(); f != nil {
		return nil, f
	}
	return b.finish()
}

// plain takes words that all are arguments.
func (b *binder) plain(words []word) *Fault {
	for len(words) > 0 && !b.restBegins() {
		b.positional, words = append(b.positional, words[0]), words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	return b.rest(words)
}

// restBegins reports whether the next word without a name belongs to the
// parameter that takes the rest of the line: those before it have theirs.
func (b *binder) restBegins() bool {
	if b.sig.rest() == nil {
		return false
	}
	before := 0
	for i := range b.sig.Parameters {
		p := &b.sig.Parameters[i]
		if p.Rest {
			break
		}
		if p.Positional && len(b.values[i]) == 0 {
			before++
		}
	}
	return len(b.positional) >= before
}

// knows reports whether a flag is one of the action's. What is not is a word of
// the rest, where that begins.
func (b *binder) knows(w word) bool {
	name, _, _ := strings.Cut(w.text, "=")
	if b.sig.named(name) != nil {
		return true
	}
	positive, no := strings.CutPrefix(name, "--no-")
	if !no {
		return false
	}
	p := b.sig.named("--" + positive)
	return p != nil && p.bare()
}

// rest assigns the rest of the line to the parameter that takes it. As everywhere,
// the quotes around a text that is one quoted word are removed.
func (b *binder) rest(words []word) *Fault {
	p := b.sig.rest()
	if p.is("array") {
		for _, w := range words {
			if f := b.set(p, w, w.text); f != nil {
				return f
			}
		}
		return nil
	}
	text := b.line[words[0].at:]
	if len(words) == 1 && words[0].bare == 0 {
		text = words[0].text
	}
	return b.set(p, words[0], text)
}

// isFlag: a dash that was typed plainly and does not begin a negative number.
func isFlag(w word) bool {
	t := w.text
	if len(t) < 2 || t[0] != '-' || w.bare < 2 {
		return false
	}
	return t[1] != '.' && (t[1] < '0' || t[1] > '9')
}

// flag reads one flag and says how many of the following words it took.
func (b *binder) flag(w word, next []word) (used int, f *Fault) {
	name, value, given := strings.Cut(w.text, "=")
	if given && len(name) >= w.bare {
		name, value, given = w.text, "", false // the equals sign was quoted
	}
	p := b.sig.named(name)
	if p == nil {
		return b.unknown(w, name, value, given)
	}
	following := len(next) > 0 && !isFlag(next[0]) && !next[0].is("--")
	switch {
	case given:
		return 0, b.set(p, w, value)
	case p.bare() && !p.is("string"):
		return 0, b.put(p, w, json.RawMessage("true"))
	case p.bare() && following:
		b.swallowed = p.flag()
		return 1, b.set(p, next[0], next[0].text)
	case p.bare():
		return 0, b.put(p, w, json.RawMessage("true"))
	case following:
		return 1, b.set(p, next[0], next[0].text)
	}
	return 0, faultAt(b.line, w.at, p.flag()+" needs a value", "write "+p.flag()+"=VALUE")
}

// unknown handles a flag that is not declared: the "no" of a boolean, one more
// argument of an open signature, or an error.
func (b *binder) unknown(w word, name, value string, given bool) (int, *Fault) {
	if positive, no := strings.CutPrefix(name, "--no-"); no && !given {
		if p := b.sig.named("--" + positive); p != nil && p.bare() {
			return 0, b.put(p, w, json.RawMessage("false"))
		}
	}
	key, long := strings.CutPrefix(name, "--")
	if b.sig.Open && long && key != "" {
		for _, e := range b.extra {
			if e.name == key {
				return 0, faultAt(b.line, w.at, "this flag is there twice", "give it once")
			}
		}
		raw := json.RawMessage("true")
		if given {
			raw = quoteJSON(value)
		}
		b.extra = append(b.extra, argument{key, raw})
		return 0, nil
	}
	f := faultAt(b.line, w.at, "there is no such flag", "").suggesting(name, b.sig.flags(), "the flags")
	if f.Fix != "" {
		f.Fix += "; "
	}
	f.Fix += "put -- before it if it is an argument"
	return 0, f
}

// word reads name=value, or keeps the word for its place.
func (b *binder) word(w word) *Fault {
	if p := b.key(w); p != nil {
		return b.set(p, w, w.text[len(p.Name)+1:])
	}
	b.positional = append(b.positional, w)
	return nil
}

// key returns the parameter that a word of the form name=value is for, or nil.
func (b *binder) key(w word) *Parameter {
	name, _, ok := strings.Cut(w.text, "=")
	if !ok || len(name) >= w.bare {
		return nil
	}
	return b.sig.key(name)
}

func (b *binder) set(p *Parameter, w word, value string) *Fault {
	types := p.Types
	if p.is("array") {
		types = p.Items
	}
	raw, want := convert(types, value)
	if want != "" {
		return faultAt(b.line, w.at, p.Name+" wants "+want, "")
	}
	return b.put(p, w, raw)
}

func (b *binder) put(p *Parameter, w word, raw json.RawMessage) *Fault {
	i := b.at(p)
	if len(b.values[i]) > 0 && !p.is("array") {
		return faultAt(b.line, w.at, p.Name+" is given twice", "give it once")
	}
	b.values[i] = append(b.values[i], raw)
	return nil
}

func (b *binder) at(p *Parameter) int {
	for i := range b.sig.Parameters {
		if &b.sig.Parameters[i] == p {
			return i
		}
	}
	return -1 // p always is one of them
}

// place assigns words without a name to the positional parameters that have no
// value yet. A list takes what is left when the parameters around it have theirs.
// If there are too few words for all, required parameters come first.
func (b *binder) place() *Fault {
	var before, after []*Parameter
	var list *Parameter
	for i := range b.sig.Parameters {
		p := &b.sig.Parameters[i]
		switch {
		case !p.Positional || len(b.values[i]) > 0 && !p.is("array"):
		case p.is("array") && list == nil:
			list = p
		case p.is("array"):
		case list == nil:
			before = append(before, p)
		default:
			after = append(after, p)
		}
	}
	words := b.positional
	before = suffice(before, after, len(words))
	for len(before) > 0 && len(words) > 0 {
		if f := b.set(before[0], words[0], words[0].text); f != nil {
			return f
		}
		before, words = before[1:], words[1:]
	}
	tail := words[max(0, len(words)-len(after)):]
	words = words[:len(words)-len(tail)]
	for i, w := range tail {
		if f := b.set(after[i], w, w.text); f != nil {
			return f
		}
	}
	for _, w := range words {
		if list == nil {
			return faultAt(b.line, w.at, "this is one argument too many", "")
		}
		if f := b.set(list, w, w.text); f != nil {
			return f
		}
	}
	return nil
}

// suffice leaves out of the parameters before a list those that may be left out
// and would take the words of those that may not.
func suffice(before, after []*Parameter, words int) []*Parameter {
	need := 0
	for _, p := range after {
		need += oneIf(p.Required)
	}
	for _, p := range before {
		need += oneIf(p.Required)
	}
	spare := max(words-need, 0)
	if need == 0 || spare >= len(before) {
		return before
	}
	var out []*Parameter
	for _, p := range before {
		if !p.Required {
			if spare == 0 {
				continue
			}
			spare--
		}
		out = append(out, p)
	}
	return out
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// finish checks that nothing is missing and writes the object.
func (b *binder) finish() (json.RawMessage, *Fault) {
	args := make([]argument, 0, len(b.sig.Parameters)+len(b.extra))
	for i := range b.sig.Parameters {
		p := &b.sig.Parameters[i]
		switch {
		case len(b.values[i]) == 0 && p.Required:
			f := faultAt(b.line, len(b.line), p.Name+" is missing", "")
			if b.swallowed != "" {
				f.Fix = "write " + b.swallowed + "=true if the word after it is an argument of its own"
			}
			return nil, f
		case len(b.values[i]) == 0:
		case p.is("array"):
			args = append(args, argument{p.Name, array(b.values[i])})
		default:
			args = append(args, argument{p.Name, b.values[i][0]})
		}
	}
	return object(append(args, b.extra...)), nil
}
