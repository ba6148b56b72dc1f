package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"ken/capability"
)

// narrows says why new arguments are not narrower than the old, or nil.
func narrows(before, after json.RawMessage) error {
	if len(before) == 0 {
		before = json.RawMessage("{}")
	}
	old, err := decode(before)
	if err != nil {
		return fmt.Errorf("the call's own arguments cannot be read: %w", err)
	}
	now, err := decode(after)
	if err != nil {
		return err
	}
	if _, ok := now.(map[string]any); !ok {
		return errors.New("not an object")
	}
	return within("", old, now)
}

// decode reads arguments that every reader understands alike.
func decode(b json.RawMessage) (any, error) {
	plain, err := capability.CanonicalJSON(b)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var v any
	err = d.Decode(&v)
	return v, err
}

// within compares what is at a path.
func within(at string, old, now any) error {
	wider := func(why string) error {
		if at == "" {
			return errors.New(why)
		}
		return fmt.Errorf("%s: %s", at[1:], why)
	}
	switch now := now.(type) {
	case map[string]any:
		was, ok := old.(map[string]any)
		if !ok {
			return wider("the original value is not an object")
		}
		for name, v := range now {
			before, there := was[name]
			if !there {
				return wider(fmt.Sprintf("%q is not in the original", name))
			}
			if err := within(at+"."+name, before, v); err != nil {
				return err
			}
		}
		return nil
	case []any:
		was, ok := old.([]any)
		if !ok {
			return wider("the original value is not a list")
		}
		for i, v := range now { // each must follow, in order, from one that was there
			for len(was) > 0 && within(at, was[0], v) != nil {
				was = was[1:]
			}
			if len(was) == 0 {
				return wider(fmt.Sprintf("item %d is not in the original", i+1))
			}
			was = was[1:]
		}
		return nil
	case json.Number:
		was, ok := old.(json.Number)
		if !ok || !nearer(was, now) {
			return wider("the number is larger than the original")
		}
		return nil
	case bool:
		if was, ok := old.(bool); !ok || now && !was {
			return wider("the original value is not true")
		}
		return nil
	case string:
		if was, ok := old.(string); !ok || was != now {
			return wider("the text differs from the original")
		}
		return nil
	case nil:
		if old != nil {
			return wider("omit the member instead of setting null")
		}
		return nil
	}
	return wider("the value has an unknown type")
}

// nearer reports whether a number lies between zero and another.
func nearer(old, now json.Number) bool {
	const digits = 64 // of an exponent, more than is ever meant
	if len(old) > digits || len(now) > digits {
		return old == now
	}
	a, _, errA := big.ParseFloat(string(old), 10, 256, big.ToNearestEven)
	b, _, errB := big.ParseFloat(string(now), 10, 256, big.ToNearestEven)
	if errA != nil || errB != nil {
		return old == now
	}
	return b.Sign() == 0 || a.Sign() == b.Sign() && new(big.Float).Abs(b).Cmp(new(big.Float).Abs(a)) <= 0
}
