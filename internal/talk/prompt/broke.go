package prompt

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ken/llm"
)

// Broke says what in a request keeps a provider from reusing what it has of an
// earlier one: "tools: …", "system: …", "message 3: …". It is empty where the
// later request begins with all of the earlier. That the last message got more
// blocks breaks nothing.
func Broke(before, after llm.Request) string {
	switch {
	case before.Model != after.Model:
		return fmt.Sprintf("model: %s became %s", orDefault(before.Model), orDefault(after.Model))
	case before.Cache != after.Cache:
		return "cache: it has another name"
	case before.Effort != after.Effort:
		return fmt.Sprintf("effort: %s became %s", orDefault(before.Effort), orDefault(after.Effort))
	}
	if why := brokeTools(before.Tools, after.Tools); why != "" {
		return "tools: " + why
	}
	if before.System != after.System {
		same := 0
		for same < min(len(before.System), len(after.System)) && before.System[same] == after.System[same] {
			same++
		}
		return fmt.Sprintf("system: it is different from byte %d on", same+1)
	}
	for i := range before.Messages {
		if i >= len(after.Messages) {
			return fmt.Sprintf("message %d: it is no longer there", i+1)
		}
		if why := brokeMessage(before.Messages[i], after.Messages[i], i == len(before.Messages)-1); why != "" {
			return fmt.Sprintf("message %d: %s", i+1, why)
		}
	}
	return ""
}

func orDefault(s string) string {
	if s == "" {
		return "the default"
	}
	return s
}

func brokeTools(before, after []llm.Tool) string {
	named := func(list []llm.Tool) (names []string) {
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names
	}
	was, is := named(before), named(after)
	var parts []string
	say := func(list, other []string, what string) {
		list = slices.DeleteFunc(slices.Clone(list), func(n string) bool { return slices.Contains(other, n) })
		if n := len(list); n > 3 {
			list = append(list[:3:3], fmt.Sprintf("and %d more", n-3))
		}
		if len(list) > 0 {
			parts = append(parts, strings.Join(list, ", ")+" "+what)
		}
	}
	say(is, was, "came")
	say(was, is, "went")
	if len(parts) == 0 && !slices.Equal(was, is) {
		return "their order is different"
	}
	if len(parts) == 0 {
		for i := range before {
			if before[i].Description != after[i].Description || !bytes.Equal(before[i].Schema, after[i].Schema) {
				return before[i].Name + " is different"
			}
		}
	}
	return strings.Join(parts, "; ")
}

func brokeMessage(before, after llm.Message, last bool) string {
	switch n := len(before.Blocks); {
	case before.Role != after.Role:
		return fmt.Sprintf("it was the %s's and is the %s's", before.Role, after.Role)
	case n > len(after.Blocks):
		return "it has fewer blocks"
	case n < len(after.Blocks) && (!last || before.Role != llm.User):
		return "it has more blocks"
	}
	for i := range before.Blocks {
		if !reflect.DeepEqual(before.Blocks[i], after.Blocks[i]) {
			return fmt.Sprintf("block %d is different", i+1)
		}
	}
	return ""
}
