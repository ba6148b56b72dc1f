package source

import (
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
)

// TestSwagger: Swagger 2.0 is read as OpenAPI 3. That its requests are correct is
// for the test of the executor, which has the same file.
func TestSwagger(t *testing.T) {
	_, b := load(t, TreeConfig{Path: filepath.Join("..", "..", "run", "executor", "api", "testdata", "swagger.json"), Trust: capability.TrustUser})
	if len(b.Problems) > 0 || len(b.Capabilities) != 7 {
		t.Fatalf("%d capabilities, problems %v", len(b.Capabilities), b.Problems)
	}
	for _, tt := range []struct {
		name, url, in, style, media string
		secrets                     []string
	}{
		{"listPets", "https://old.example/v2/pets", `{"X-Trace":"header","ids":"query","limit":"query","pipes":"query","tags":"query"}`,
			`{"ids":"form:false","pipes":"pipeDelimited:false","tags":"form:true"}`, "", []string{"OLD_SHOP_API_KEY"}},
		{"addPet", "https://old.example/v2/pets", `{"kind":"body","limit":"query","name":"body","owner":"body"}`, "", "", []string{"OLD_SHOP_USERNAME", "OLD_SHOP_PASSWORD"}},
		{"getPet", "https://old.example/v2/pets/{id}", `{"id":"path"}`, "", "", []string{"OLD_SHOP_CLIENT_ID", "OLD_SHOP_CLIENT_SECRET"}},
		{"changePet", "https://old.example/v2/pets/{id}", `{"age":"body","id":"path","name":"body"}`, "", "application/x-www-form-urlencoded", []string{"OLD_SHOP_API_KEY"}},
		{"addPhoto", "https://old.example/v2/pets/{id}/photo", `{"id":"path","note":"body","photo":"body"}`, "", "multipart/form-data", []string{"OLD_SHOP_API_KEY"}},
		{"removePet", "https://old.example/v2/pets/{id}", `{"id":"path"}`, "", "", nil},
	} {
		i := slices.IndexFunc(b.Capabilities, func(c *capability.Capability) bool { return c.Name == tt.name })
		if i < 0 {
			t.Errorf("there is no %s", tt.name)
			continue
		}
		c := b.Capabilities[i]
		if c.Run.URL != tt.url || c.Meta["in"] != tt.in || c.Meta["style"] != tt.style || c.Meta["contentType"] != tt.media || !slices.Equal(c.RequiredSecrets, tt.secrets) {
			t.Errorf("%s: %s %v, secrets %v", tt.name, c.Run.URL, c.Meta, c.RequiredSecrets)
		}
	}
}
