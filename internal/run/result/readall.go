package result

import (
	"context"
	"strings"
)

// ReadAll returns the whole text of a result.
func (s *Store) ReadAll(ctx context.Context, scope Scope, handle string) (string, error) {
	var text strings.Builder
	for from := int64(1); ; {
		piece, err := s.Read(ctx, scope, Query{Handle: handle, Op: OpChars, From: from, Limit: Whole})
		if err != nil {
			return "", err
		}
		text.WriteString(piece.Text)
		if piece.Left == "" || piece.Chars.To < from {
			return text.String(), nil
		}
		from = piece.Chars.To + 1
	}
}
