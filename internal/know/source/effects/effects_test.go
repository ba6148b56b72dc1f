package effects

import (
	"encoding/json"
	"testing"
)

func TestChanges(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"delete_all_files", "", `its name says "delete"`},
		{"deleteAllFiles", "", `its name says "delete"`},
		{"DELETE-all", "", `its name says "delete"`},
		{"deleteallfiles", "", `its name says "deleteallfiles"`},
		{"files.remove", "", `its name says "remove"`},
		{"get_and_delete", "", `its name says "delete"`},
		{"readWriteFile", "", `its name says "write"`},
		{"HTTPSend", "", `its name says "send"`},
		{"run_query", "", `its name says "run"`},
		{"commit", "", `its name says "commit"`},
		{"get_commit", "", ""},
		{"list_workflow_runs", "", ""},
		{"search_orders", "", ""},
		{"list_deleted_files", "", ""},
		{"last_updated", "", ""},
		{"echo", "", ""},
		{"look_up", `{"properties":{"sql":{}}}`, `it takes the argument "sql"`},
		{"look_up", `{"properties":{"in":{"type":"object","properties":{"Command-Line":{}}}}}`, `it takes the argument "commandline"`},
		{"look_up", `{"$ref":"#/$defs/In","$defs":{"In":{"properties":{"path":{},"content":{}}}}}`, `it takes the arguments "path" and "content"`},
		{"look_up", `{"properties":{"path":{}}}`, ""},
		{"look_up", `{"properties":{"query":{},"limit":{}}}`, ""},
		{"look_up", `{`, "its input schema cannot be read"},
	} {
		if got := Changes(c.name, json.RawMessage(c.schema)); got != c.want {
			t.Errorf("changes(%q, %s) = %q, want %q", c.name, c.schema, got, c.want)
		}
	}
}
