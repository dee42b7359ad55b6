package mcmprovider

import (
	"encoding/json"
	"os"
	"testing"
)

// The cases are those of pkg/driver/without-secrets.test.ts, too: the manager and the driver hide the same.
func TestTextsDoNotRepeatSecrets(t *testing.T) {
	text, err := os.ReadFile("testdata/secrets.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Secret map[string]string
		Cases  []struct{ What, Text, Want string }
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{}
	for name, value := range table.Secret {
		data[name] = []byte(value)
	}
	pieces := piecesOf(data)
	for _, one := range table.Cases {
		t.Run(one.What, func(t *testing.T) {
			if got := withoutSecrets(one.Text, pieces); got != one.Want {
				t.Errorf("%s\nwant %s", got, one.Want)
			}
		})
	}
}
