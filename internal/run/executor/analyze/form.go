package analyze

import "encoding/json"

// A Form holds texts to a JSON Schema, as analyze.schema does.
type Form struct{ judge *judge }

// NewForm returns the Form of a schema.
func NewForm(schema json.RawMessage) (*Form, error) {
	j, err := compile(schema)
	if err != nil {
		return nil, err
	}
	return &Form{j}, nil
}

// Read returns the JSON in a text, repaired in its form by rules where that is
// needed, and what of it does not fit; "" means that it fits.
func (f *Form) Read(text string) (value json.RawMessage, problems string) {
	var v verdict
	v.judge(f.judge, readings(text, look(given(text))))
	if v.valid() {
		return v.best.value, ""
	}
	return nil, lines(v.problems, v.more)
}
