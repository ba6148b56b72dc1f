// Program library makes a Go function a capability, finds it, calls it under
// the rules, and lets a model use it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"ken"
	"ken/capability"
)

type place struct {
	City string `json:"city" jsonschema:"name of the city"`
}

func main() {
	ken.Helper() // where Ken may start programs, main begins with it
	ctx, message := context.Background(), "what is the weather forecast for Oslo?"
	weather, err := ken.Func("weather", "Weather forecast for a city", func(_ context.Context, in place) (string, error) { return "Rain in " + in.City, nil })
	check(err)
	weather.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
	home, err := os.MkdirTemp("", "ken") // a real program has a folder that it keeps
	check(err)
	defer os.RemoveAll(home)
	k, err := ken.Open(ctx, ken.Config{Home: home, Functions: []*ken.Function{weather}, Model: scripted()}) // nil: the model of ken.yaml
	check(err)
	defer k.Close()
	found, err := k.Find(ctx, message)
	check(err)
	res, err := k.Invoke(ctx, capability.Call{Target: found[0].Capability.ID, Arguments: json.RawMessage(`{"city":"Oslo"}`), Origin: capability.ByPerson})
	check(err)
	fmt.Printf("%s: %s\n", found[0].Capability.ID, res.Parts[0].Text)
	for event, err := range k.Turn(ctx, ken.Words{Text: message}) {
		check(err)
		if done, ok := event.(ken.Done); ok {
			fmt.Printf("%d calls: %s\n", done.Calls, done.Text)
		}
	}
}
