package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/capability"
	"ken/internal/jsonvalid"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

// maxSchemas is how many compiled ones are kept.
const maxSchemas = 4096

// schemas keeps compiled schemas by what they belong to.
type schemas struct {
	mu sync.RWMutex
	by map[string]*checker
}

// validate holds the arguments to the schema and counts them. Its errors name the
// place and what belongs there, never what was there.
func (r *Runner) validate(ctx context.Context, call capability.Call, t target, limits Limits, notes *notes) (args int, err error) {
	value, err := limits.arguments(call.Arguments)
	if err != nil {
		return 0, invalid(call, err)
	}
	fit, err := r.schemas.of(ctx, t, notes)
	if err != nil {
		return len(value), err
	}
	if err := check(fit, value); err != nil {
		return len(value), invalid(call, err)
	}
	return len(value), nil
}

func invalid(call capability.Call, err error) error {
	e := &capability.Error{
		Kind: capability.Invalid, Op: "validate", Target: string(call.Target), Err: err, Fix: "describe_capability shows its arguments",
	}
	if call.Origin == capability.ByPerson {
		e.Fix = "ken catalog show " + string(call.Target) + " lists its arguments"
	}
	return e
}

// arguments reads the arguments, no larger and no deeper than allowed.
func (l Limits) arguments(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	if len(raw) > l.ArgumentBytes {
		return nil, fmt.Errorf("the arguments have %d bytes, more than limits.argumentBytes (%d)", len(raw), l.ArgumentBytes)
	}
	if schema.Depth(raw) > l.ArgumentDepth {
		return nil, fmt.Errorf("the arguments are nested deeper than limits.argumentDepth (%d)", l.ArgumentDepth)
	}
	if !utf8.Valid(raw) { // rules would read other characters than what the capability gets
		return nil, errors.New("the arguments are not UTF-8")
	}
	if value, ok := plainObject(raw); ok {
		return value, nil
	}
	var value map[string]any
	err := json.Unmarshal(raw, &value)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("the arguments are not JSON, at byte %d", bad.Offset)
	}
	if err != nil || value == nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return value, nil
}

// plainObject reads an object of texts, numbers, booleans and nulls as encoding/json
// does, in a third of the time. It reports false for everything else.
func plainObject(raw json.RawMessage) (map[string]any, bool) {
	if raw[0] != '{' || !jsonvalid.Valid(raw) {
		return nil, false
	}
	out := map[string]any{}
	for name, value := range untrusted.Members(raw) {
		var ok bool
		switch value[0] {
		case '"':
			out[name], ok = jsonvalid.Text(value)
		case 't', 'f':
			out[name], ok = value[0] == 't', true
		case 'n':
			out[name], ok = nil, true
		case '{', '[':
		default:
			number, err := strconv.ParseFloat(string(value), 64)
			out[name], ok = number, err == nil
		}
		if !ok {
			return nil, false
		}
	}
	return out, true
}

// check validates. The validator's own words quote the arguments, so they are
// not passed on: explain finds others.
func check(c *checker, value map[string]any) error {
	if c.quick == nil && tooLong(c.Schema(), value) {
		return fmt.Errorf("checking the arguments against the schema takes more than %d steps; nest them less deeply", mostSteps)
	}
	fits, err := guard("validate", func(string) {}, func() (bool, error) { return c.fits(value), nil })
	if fits && err == nil {
		return nil
	}
	return errors.New(explain(c.Schema(), value))
}

// of returns the compiled schema of a target's arguments.
func (s *schemas) of(ctx context.Context, t target, notes *notes) (*checker, error) {
	c := t.Capability
	key := c.Hash + " " + string(c.ID)
	if c.Hash != "" {
		s.mu.RLock()
		found := s.by[key]
		s.mu.RUnlock()
		if found != nil {
			return found, nil
		}
	}
	raw, err := t.schema(ctx)
	if err != nil {
		return nil, err
	}
	made, err := guard("compile schema", notes.panicked, func() (*checker, error) {
		return compile(raw, c.Parameters, !judgesItself(c))
	})
	if err != nil {
		return nil, unusable(c, err)
	}
	if c.Hash != "" {
		s.mu.Lock()
		if s.by == nil || len(s.by) >= maxSchemas {
			s.by = map[string]*checker{}
		}
		s.by[key] = made
		s.mu.Unlock()
	}
	return made, nil
}

// unusable refuses a call whose arguments cannot be held to their schema.
// No other part is trusted to do it.
func unusable(c *capability.Capability, err error) error {
	fix := "correct the schema at " + c.Origin.String()
	if judgesItself(c) {
		fix = "tell the author of the MCP server " + c.Category
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "read schema", Target: string(c.ID), Err: fmt.Errorf("invalid input schema: %w", err), Fix: fix,
	}
}

// schema asks the source, then the executor.
func (t *target) schema(ctx context.Context) (json.RawMessage, error) {
	if t.Schema != nil {
		raw, err := t.Schema(ctx)
		if err != nil || len(raw) > 0 {
			return raw, err
		}
	}
	if x, ok := t.executor.(Schemer); ok {
		return x.Schema(t.Capability), nil
	}
	return nil, nil
}

// judgesItself reports whether the executor knows its own schema
// and holds arguments to it: what a schema leaves open stays open then.
func judgesItself(c *capability.Capability) bool {
	return c.Run != nil && strings.HasPrefix(c.Run.Runner, "mcp.")
}

func compile(raw json.RawMessage, parameters []capability.Parameter, closed bool) (*checker, error) {
	root := fromParameters(parameters)
	if len(raw) > 0 {
		var err error
		if root, err = schema.Read(raw); err != nil {
			return nil, err
		}
	}
	if closed {
		shut(root)
	}
	full, err := root.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &checker{full, quickSchemaOf(root, 0)}, nil
}

// shut makes the root refuse arguments that it does not name, unless it says
// something about them itself.
func shut(s *jsonschema.Schema) {
	if s.AdditionalProperties != nil || s.UnevaluatedProperties != nil {
		return
	}
	if s.Ref == "" && s.DynamicRef == "" && s.AllOf == nil && s.AnyOf == nil && s.OneOf == nil && s.If == nil && s.DependentSchemas == nil {
		s.AdditionalProperties = nothing()
		return
	}
	if strings.Contains(s.Schema, "draft-07") {
		return // it has no way to say so
	}
	s.UnevaluatedProperties = nothing()
}

// fromParameters makes a schema where there is none. No parameters: no
// arguments.
func fromParameters(list []capability.Parameter) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, p := range list {
		one := &jsonschema.Schema{}
		switch p.Type {
		case "string", "number", "integer", "boolean", "array", "object":
			one.Type = p.Type
		}
		s.Properties[p.Name] = one
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}
