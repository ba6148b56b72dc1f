package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/executor/generate"
	"ken/internal/tokenizer"
	"ken/llm"
)

// An exchange is the requests of one call.
type exchange struct {
	*plan
	model Model
	call  capability.Call
	left  time.Duration // for all requests
	began time.Time
	meta  map[string]string

	input, output int
	spent         float64
}

func (x *exchange) run(ctx context.Context) (capability.Result, error) {
	messages := []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: x.prompt}}}}
	if err := x.affordable(x.tokens); err != nil {
		return capability.Result{}, err
	}
	say := func(string) {}
	if x.call.Live != nil && x.form == nil {
		say = func(s string) { _, _ = io.WriteString(x.call.Live, s) } // the watcher may have gone; the result has it all
	}
	a, why := x.ask(ctx, messages, say)
	if err := x.ended(ctx); err != nil {
		return capability.Result{Failed: true, Meta: x.meta}, err
	}
	if why != "" {
		return x.failed(why, a.Text), nil
	}
	if x.form == nil {
		return x.text(a), nil
	}
	value, problems := x.form.Read(a.Text)
	if problems == "" {
		return x.json(value), nil
	}
	// Once more, with what is wrong.
	again := append(messages, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: a.Text}}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: "Your answer does not fit the schema:\n" + problems + "\nAnswer with the corrected JSON and nothing else."}}})
	x.meta["repaired"] = "true"
	if err := x.affordable(x.tokens + tokenizer.Count(a.Text) + tokenizer.Count(problems)); err != nil {
		return x.failed("its answer does not fit the schema ("+problems+"), and asking again would cost more than ask.maxPrice allows", a.Text), nil
	}
	a, why = x.ask(ctx, again, say)
	if err := x.ended(ctx); err != nil {
		return capability.Result{Failed: true, Meta: x.meta}, err
	}
	if why != "" {
		return x.failed(why, a.Text), nil
	}
	if value, problems = x.form.Read(a.Text); problems != "" {
		return x.failed("its answer does not fit the schema, and neither did the corrected one: "+problems, a.Text), nil
	}
	return x.json(value), nil
}

// affordable returns an error if one more request could cost more than the recipe
// allows.
func (x *exchange) affordable(input int) error {
	if x.MaxPrice <= 0 {
		return nil
	}
	refuse := func(why, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: "ask with", Target: string(x.call.Target), Rule: "ask.maxPrice", Err: errors.New(why), Fix: fix}
	}
	if !x.model.Priced || x.model.Cost == nil {
		return refuse(fmt.Sprintf("the price of %s is unknown, but the recipe sets maxPrice", x.model.Name), "write the price of the model into the model table, or remove ask.maxPrice")
	}
	if most := x.spent + x.model.Cost(llm.Usage{Input: input, Output: x.limit()}); most > x.MaxPrice {
		return refuse(fmt.Sprintf("the call could cost $%.6f with %s, more than ask.maxPrice of the recipe ($%.6f)", most, x.model.Name, x.MaxPrice), "raise ask.maxPrice, lower ask.maxTokens, or name another model")
	}
	return nil
}

// ask makes one request and counts what it cost.
func (x *exchange) ask(ctx context.Context, messages []llm.Message, say func(string)) (generate.Answer, string) {
	began := time.Now()
	a, why := generate.Text(ctx, x.model, llm.Request{System: x.system, Messages: messages, MaxTokens: x.limit()}, x.left, say)
	x.left -= time.Since(began)
	u := llm.Usage{Input: tokenizer.Count(x.system + x.prompt), Output: tokenizer.Count(a.Text)}
	if a.Usage != nil {
		u = *a.Usage
	}
	x.input, x.output = x.input+u.Input, x.output+u.Output
	x.meta["input_tokens"], x.meta["output_tokens"] = strconv.Itoa(x.input), strconv.Itoa(x.output)
	if x.model.Priced && x.model.Cost != nil {
		x.spent += x.model.Cost(u)
		x.meta["price_usd"] = strconv.FormatFloat(x.spent, 'f', 6, 64)
	}
	if why == "" && a.Stop == llm.StopLength && x.form != nil {
		why = fmt.Sprintf("its answer ended at its limit of %d tokens (ask.maxTokens)", x.limit())
	}
	return a, why
}

// ended returns that the call was stopped, or nil.
func (x *exchange) ended(ctx context.Context) error {
	if ctx.Err() == nil && x.left > 0 {
		return nil
	}
	kind := capability.Timeout
	if errors.Is(ctx.Err(), context.Canceled) {
		kind = capability.Unavailable
	}
	return &capability.Error{Kind: kind, Op: "ask with", Target: string(x.call.Target), Err: errors.New("the model took too long"), Fix: "raise timeoutSec of the recipe, or name a faster model"}
}

// failed is the result of a model that did not answer, with what it said.
func (x *exchange) failed(why, said string) capability.Result {
	r := capability.Result{Failed: true, Meta: x.meta, Parts: []capability.Part{{Text: x.model.Name + ": " + why}}}
	if said != "" {
		r.Parts = append(r.Parts, capability.Part{Text: x.clipped(said), MIME: executor.MIMEStdout})
	}
	return r
}

func (x *exchange) text(a generate.Answer) capability.Result {
	text := x.clipped(a.Text)
	if a.Stop == llm.StopLength {
		x.meta["truncated"] = "true"
		text += fmt.Sprintf("\n\n[The answer ended at its limit of %d tokens.]", x.limit())
	}
	return capability.Result{Parts: []capability.Part{{Text: text, MIME: executor.MIMEStdout}}, Meta: x.meta}
}

func (x *exchange) json(value []byte) capability.Result {
	return capability.Result{Parts: []capability.Part{{JSON: value, MIME: "application/json"}}, Meta: x.meta}
}

// clipped cuts a text to the output that the recipe allows.
func (x *exchange) clipped(text string) string {
	if n := x.capability.Run.MaxOutputSize; n > 0 && len(text) > n {
		x.meta["truncated"] = "true"
		return executor.Clip(text, n)
	}
	return text
}
