package safefs

import "bytes"

// NormalizeNewlines returns a text with every CRLF replaced by a newline.
func NormalizeNewlines(data []byte) string {
	return string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
}
