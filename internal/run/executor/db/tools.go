package db

import (
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/run/executor"
)

// schemaOf returns the schema of a verb's arguments. With names, the argument
// connection is one of them.
func schemaOf(verb string, names []string) json.RawMessage {
	var connection string
	required := `["sql"]`
	if names != nil {
		list, err := json.Marshal(names)
		if err != nil {
			list = []byte("[]") // texts: it cannot fail
		}
		connection = `"connection":{"type":"string","description":"the database","enum":` + string(list) + `,"x-ken-position":1},`
		required = `["connection","sql"]`
	}
	if verb == verbInspect {
		required = strings.NewReplacer(`,"sql"`, "", `"sql"`, "").Replace(required)
		return json.RawMessage(`{"type":"object","properties":{` + connection +
			`"table":{"type":"string","description":"one table, with its definition; without it all tables","x-ken-position":2}},` +
			`"required":` + required + `,"additionalProperties":false}`)
	}
	rows := `,"format":{"type":"string","enum":["markdown","csv","json"],"description":"the form of the rows","default":"markdown"},` +
		`"rows":{"type":"integer","minimum":1,"description":"the most rows to return"}`
	if verb == verbExplain {
		rows = ""
	}
	return json.RawMessage(`{"type":"object","properties":{` + connection +
		`"sql":{"type":"string","description":"one statement, with ? (SQLite, MySQL) or $1 (PostgreSQL) for values","x-ken-position":2},` +
		`"parameters":{"type":"array","description":"the values, in order: text, number, true, false, null, or {\"base64\": \"…\"} for bytes"}` + rows +
		`},"required":` + required + `,"additionalProperties":false}`)
}

// Tools returns the tools of some connections: inspect, query and explain of
// each, and execute where it may be changed; and the command /db for all.
func Tools(list []Connection) []executor.Tool {
	var out []executor.Tool
	var names []string
	local, far := false, false
	for _, c := range list {
		names = append(names, c.Name)
		local, far = local || c.Engine == SQLite, far || c.Engine != SQLite
		for _, verb := range Verbs() {
			if verb != verbExecute || c.Write {
				out = append(out, toolOf(c, verb))
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	for _, verb := range Verbs() { // execute says which setting allows it
		out = append(out, commandOf(verb, names, local, far))
	}
	return out
}

func toolOf(c Connection, verb string) executor.Tool {
	name := "db_" + c.Name + "_" + verb
	what := map[string]string{
		verbInspect: "Describe the tables of the database %s: columns, types, keys, row counts.",
		verbQuery:   "Read rows of the database %s with one SQL statement. It cannot change anything.",
		verbExplain: "Show how the database %s would run a SQL statement, without running it.",
		verbExecute: "Change the database %s with one SQL statement.",
	}
	text := fmt.Sprintf(what[verb], c.Name)
	if c.Description != "" {
		text += " " + c.Description
	}
	var needs []string
	if password, ok := strings.CutPrefix(c.Password, "secret:"); ok {
		needs = []string{password}
	}
	return executor.Tool{
		Capability: capability.Capability{
			ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Category: "databases", Description: text,
			Tags: tagsOf(verb, c.Engine, c.Name), RequiredSecrets: needs, Permissions: permissions(c, verb), Effects: effectsOf(verb),
			Run: &capability.Recipe{Runner: "db." + verb, Argv: []string{c.Name}},
		},
		Detail: capability.Detail{Schema: schemaOf(verb, nil)},
	}
}

func commandOf(verb string, names []string, local, far bool) executor.Tool {
	text := map[string]string{
		verbInspect: "Describe the tables of a database.", verbQuery: "Read rows of a database with one SQL statement.",
		verbExplain: "Show how a database would run a SQL statement.", verbExecute: "Change a database with one SQL statement.",
	}[verb]
	var need []string
	if local {
		need = permissions(Connection{Engine: SQLite}, verb)
	}
	if far {
		need = append(need, executor.PermNetwork)
	}
	return executor.Tool{
		Capability: capability.Capability{
			ID: capability.MakeID(capability.KindCommand, "db/"+verb), Kind: capability.KindCommand, Name: "db " + verb, Category: "databases", Description: text,
			Tags: tagsOf(verb), Aliases: []string{"/db"}, Permissions: need, Effects: effectsOf(verb),
			Run:  &capability.Recipe{Runner: "db." + verb, Argv: []string{Chosen}, Action: verb},
			Meta: map[string]string{"default_action": verbInspect},
		},
		Detail: capability.Detail{Schema: schemaOf(verb, names)},
	}
}

func tagsOf(verb string, more ...string) []string {
	tags := append([]string{"database", "sql"}, more...)
	switch verb {
	case verbInspect:
		return append(tags, "schema", "tables", "columns")
	case verbQuery:
		return append(tags, "select", "rows", "data")
	case verbExplain:
		return append(tags, "plan", "slow")
	}
	return append(tags, "insert", "update", "delete")
}

func effectsOf(verb string) capability.Effects {
	if verb == verbExecute {
		return capability.Effects{ReadOnly: capability.No, Destructive: capability.Yes, OpenWorld: capability.No}
	}
	return capability.Effects{ReadOnly: capability.Yes, Destructive: capability.No, Idempotent: capability.Yes, OpenWorld: capability.No}
}
