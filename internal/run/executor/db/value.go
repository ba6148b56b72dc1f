package db

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/internal/jsonappend"
)

// A value that an engine gives is nil, bool, int64, float64, string, []byte, a
// number, a jsonText or a long.

// A long value is the beginning of a text or of bytes that are not shown whole.
type long struct {
	head   []byte
	whole  int // bytes of all of it
	isText bool
}

// text returns a long value as clipped does.
func (l long) text(most int, cut *int) string {
	*cut++
	head := l.head[:min(len(l.head), most)]
	for range utf8.UTFMax - 1 { // a character that was cut in two
		if r, size := utf8.DecodeLastRune(head); r != utf8.RuneError || size != 1 {
			break
		}
		head = head[:len(head)-1]
	}
	return fmt.Sprintf("%s[… %d bytes left out …]", strings.ToValidUTF8(string(head), "\uFFFD"), l.whole-len(head))
}

// A number is one as the database writes it, exactly.
type number string

// A jsonText is a JSON value as the database keeps it.
type jsonText string

const exactInt = 1 << 53 // the largest up to which every reader of JSON is exact

// appendJSON writes a value as JSON. A number that some readers would round is
// a string, and bytes are an object with their length.
func appendJSON(b []byte, v any, most int, cut *int) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		if v > exactInt || v < -exactInt {
			b = append(b, '"')
			return append(strconv.AppendInt(b, v, 10), '"')
		}
		return strconv.AppendInt(b, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return jsonappend.String(b, plainFloat(v))
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case number:
		return jsonappend.String(b, string(v))
	case jsonText:
		if len(v) <= most && json.Valid([]byte(v)) {
			return append(b, v...)
		}
		return jsonappend.String(b, clipped(string(v), most, cut))
	case string:
		return jsonappend.String(b, clipped(v, most, cut))
	case []byte:
		return appendBytes(b, v, len(v), most, cut)
	case long:
		if v.isText {
			return jsonappend.String(b, v.text(most, cut))
		}
		return appendBytes(b, v.head, v.whole, most, cut)
	}
	return jsonappend.String(b, fmt.Sprint(v))
}

// appendBytes writes bytes, of which there are as many as whole says.
func appendBytes(b, v []byte, whole, most int, cut *int) []byte {
	if v = v[:min(len(v), most*3/4)]; len(v) < whole {
		*cut++
	}
	b = append(b, `{"bytes":`...)
	b = strconv.AppendInt(b, int64(whole), 10)
	b = append(b, `,"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, `"}`...)
}

// plainText returns a value as text, for tables that people and models read.
func plainText(v any, most int, cut *int) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return plainFloat(v)
	case number:
		return string(v)
	case jsonText:
		return clipped(string(v), most, cut)
	case string:
		return clipped(v, most, cut)
	case []byte:
		return plainBytes(v, len(v), cut)
	case long:
		if v.isText {
			return v.text(most, cut)
		}
		return plainBytes(v.head, v.whole, cut)
	}
	return fmt.Sprint(v)
}

func plainBytes(v []byte, whole int, cut *int) string {
	const shown = 32
	if whole > shown {
		*cut++
		return fmt.Sprintf("x'%s…' (%d bytes)", hex.EncodeToString(v[:shown]), whole)
	}
	return "x'" + hex.EncodeToString(v) + "'"
}

func plainFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// clipped returns a text that is no longer than most bytes, or its beginning and
// how much is missing.
func clipped(s string, most int, cut *int) string {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if len(s) <= most {
		return s
	}
	*cut++
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s[… %d bytes left out …]", s[:end], len(s)-end)
}
