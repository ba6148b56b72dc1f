package confine

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"
)

// fill fills every field of a struct, each with another value, so that one that is
// not written is seen.
func fill(t *testing.T, v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text\x00\xff", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64 + *n)
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

func TestWireRoundTrip(t *testing.T) {
	var o Order
	var m Message
	var n int64
	fill(t, reflect.ValueOf(&o).Elem(), &n)
	fill(t, reflect.ValueOf(&m).Elem(), &n)
	if got, err := DecodeOrder(o.Encode()); err != nil || !reflect.DeepEqual(*got, o) {
		t.Errorf("DecodeOrder(Encode(%+v)) = %+v, %v", o, got, err)
	}
	if got, err := DecodeMessage(m.Encode()); err != nil || !reflect.DeepEqual(*got, m) {
		t.Errorf("DecodeMessage(Encode(%+v)) = %+v, %v", m, got, err)
	}
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
