package confine

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// full fills every field of a struct, so that one that is not written is seen.
func full(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			full(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			full(t, v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
			return
		}
		if n := rapid.IntRange(0, 4).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			full(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

func TestWireRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Order
		full(t, reflect.ValueOf(&o).Elem())
		if got, err := DecodeOrder(o.Encode()); err != nil || !reflect.DeepEqual(*got, o) {
			t.Fatalf("DecodeOrder(Encode(%+v)) = %+v, %v", o, got, err)
		}
		var m Message
		full(t, reflect.ValueOf(&m).Elem())
		if got, err := DecodeMessage(m.Encode()); err != nil || !reflect.DeepEqual(*got, m) {
			t.Fatalf("DecodeMessage(Encode(%+v)) = %+v, %v", m, got, err)
		}
	})
}

// TestWireRefuses cuts and lengthens what was written.
func TestWireRefuses(t *testing.T) {
	o := &Order{Path: "/bin/true", Args: [][]byte{[]byte("true")}, Mounts: []Mount{{Source: "/usr", Ino: math.MaxUint64}}, Processes: 3}
	data := o.Encode()
	for n := range data {
		if got, err := DecodeOrder(data[:n]); err == nil {
			t.Errorf("DecodeOrder of %d bytes of %d = %+v, want an error", n, len(data), got)
		}
	}
	if got, err := DecodeOrder(append(bytes.Clone(data), 0)); err == nil {
		t.Errorf("DecodeOrder with a byte more = %+v, want an error", got)
	}
	if got, err := DecodeOrder(data); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("control: DecodeOrder = %+v, %v, want %+v", got, err, o)
	}
}

// FuzzWire reads anything; what is accepted says the same when written again.
func FuzzWire(f *testing.F) {
	f.Add((&Order{Path: "/bin/true", Args: [][]byte{[]byte("true")}}).Encode())
	f.Add((&Message{Ended: &Ended{Code: -1, Signal: 9}}).Encode())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, err := DecodeOrder(data); err == nil {
			if again, err := DecodeOrder(o.Encode()); err != nil || !reflect.DeepEqual(again, o) {
				t.Errorf("order %+v came back as %+v, %v", o, again, err)
			}
		}
		if m, err := DecodeMessage(data); err == nil {
			if again, err := DecodeMessage(m.Encode()); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("message %+v came back as %+v, %v", m, again, err)
			}
		}
	})
}
