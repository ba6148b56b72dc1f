package ken_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/internal/yamldoc"
)

func parseYAML(t *testing.T, name string, text []byte) *yamldoc.Map {
	t.Helper()
	m, err := yamldoc.Parse(text, yamldoc.Limits{Bytes: 1 << 20, Keys: 10_000, Depth: 32})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// asJSON returns a document of YAML as what JSON decodes to.
func asJSON(t *testing.T, name string, text []byte) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(yamldoc.Value{Any: parseYAML(t, name, text)}.JSON(), &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// TestCompose: the file for Docker names what a cluster needs, and all its services have
// the same settings.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Aliases and merge keys are Docker's to read: they are refused elsewhere in Ken.
	text = regexp.MustCompile(`(?m)^(x-ken: )&ken$`).ReplaceAll(text, []byte("x-ken:"))
	text = regexp.MustCompile(`(?m)^ *<<: \*ken\n`).ReplaceAll(text, nil)
	services, _ := asJSON(t, "compose.yaml", text)["services"].(map[string]any)
	for _, want := range []string{"postgres", "migrate", "ken-1", "ken-2", "worker-1", "worker-2", "caddy"} {
		one, ok := services[want].(map[string]any)
		if !ok {
			t.Errorf("compose.yaml has no service %s", want)
			continue
		}
		if ken := want != "postgres" && want != "caddy"; ken != strings.Contains(fmt.Sprint(one["volumes"]), "./ken.yaml:/etc/ken/ken.yaml:ro") {
			t.Errorf("%s has the volumes %v", want, one["volumes"])
		}
	}
}

// TestChart renders the Helm chart with the functions of Helm that it uses, and checks
// that every document is YAML and that nothing that a cluster needs is missing.
func TestChart(t *testing.T) {
	const chart = "deploy/helm/ken/"
	read := func(name string) []byte {
		text, err := os.ReadFile(chart + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	parseYAML(t, "Chart.yaml", read("Chart.yaml"))
	values := asJSON(t, "values.yaml", read("values.yaml"))
	var shape jsonschema.Schema
	if err := json.Unmarshal(read("values.schema.json"), &shape); err != nil {
		t.Fatal(err)
	}
	checker, err := shape.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := checker.Validate(values); err != nil {
		t.Errorf("values.yaml does not fit its schema: %v", err)
	}
	if err := checker.Validate(map[string]any{"replicas": 0}); err == nil {
		t.Error("the schema takes no replicas for a value")
	}
	files, err := filepath.Glob(chart + "templates/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("templates: %v", err)
	}
	var kinds []string
	for _, file := range files {
		for _, change := range []map[string]any{{}, {"workers": 0, "ingressFrom": "web"}} {
			with := map[string]any{}
			for k, v := range values {
				with[k] = v
			}
			for k, v := range change {
				with[k] = v
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			quote := func(v any) string { b, _ := json.Marshal(v); return string(b) }
			page, err := template.New(file).Option("missingkey=error").Funcs(template.FuncMap{"quote": quote}).Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := page.Execute(&out, map[string]any{"Values": with, "Release": map[string]any{"Name": "ken"}}); err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(out.String()) == "" {
				continue // no workers
			}
			doc := asJSON(t, file, out.Bytes())
			kind, _ := doc["kind"].(string)
			kinds = append(kinds, kind)
			if kind == "Deployment" && strings.HasSuffix(file, "serve.yaml") {
				for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe", "readOnlyRootFilesystem", "runAsNonRoot"} {
					if !strings.Contains(out.String(), probe) {
						t.Errorf("%s has no %s", file, probe)
					}
				}
			}
		}
	}
	for _, want := range []string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("the chart has no %s", want)
		}
	}
}
