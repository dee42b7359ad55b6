package mcmprovider

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"

	"machinist.example/mcm-provider/contract"
)

func TestFlagsThatAreMissingOrWrongAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "--address is missing",
		"--address=unix:///a": "--state-directory is missing",
		"--address=unix:///a --state-directory=b --log-level=all": "--log-level",
		"--address=unix:///a --state-directory=b more":            "unexpected argument \"more\"",
		"--port=1": "-port",
	} {
		if _, err := parse(strings.Fields(line), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestAProviderAddsItsFlagsToThoseOfEveryDriver(t *testing.T) {
	region := ""
	options := Options{Flags: func(set *flag.FlagSet) { set.StringVar(&region, "region", "", "") }}
	line := "--address=unix:///a --state-directory=b --metrics-address=127.0.0.1:1 --region=r"
	given, err := parse(strings.Fields(line), options)
	if err != nil || region != "r" || *given != (flags{"unix:///a", "b", "127.0.0.1:1", "info"}) {
		t.Errorf("%v, %v, region %q", given, err, region)
	}
}

func TestAProviderThatCannotBeMadeIsAnError(t *testing.T) {
	for want, make := range map[string]func(context.Context) (driver.Driver, error){
		"no kubeconfig": func(context.Context) (driver.Driver, error) { return nil, errors.New("no kubeconfig") },
		"the provider panicked in its constructor: a defect": func(context.Context) (driver.Driver, error) { panic("a defect") },
	} {
		err := serve(make, Options{}, &flags{state: t.TempDir()}, &secrets{})
		if err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
}

func TestMetricsAreServedAtAnIPAndAPort(t *testing.T) {
	for _, address := range []string{"9090", "localhost:9090", ":9090"} {
		if err := checkMetricsAddress(address); err == nil {
			t.Errorf("%s is accepted", address)
		}
	}
	if err := checkMetricsAddress("0.0.0.0:9090"); err != nil {
		t.Error(err)
	}
}

func TestTokensAreKeptWhereOnlyTheUserOfTheDriverReads(t *testing.T) {
	folder := t.TempDir() + "/state"
	fencing, err := OpenFencing(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := fencing.Admit(&contract.Call{Cluster: "c", FencingToken: 2}, "n"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, folder + "/fencing.json": 0o600} {
		if found, err := os.Stat(path); err != nil || found.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, found.Mode(), err)
		}
	}
	again, _ := OpenFencing(folder)
	if err := again.Admit(&contract.Call{Cluster: "c", FencingToken: 1}, "n"); codeIn(err) != contract.Code_CODE_FAILED_PRECONDITION {
		t.Errorf("an older token after a restart: %v", err)
	}
}

func TestTheResultOfACallIsThatOfItsResponse(t *testing.T) {
	over, end := context.WithCancel(context.Background())
	end()
	refused := &contract.CreateMachineResponse{Failure: &contract.Failure{Code: contract.Code_CODE_RESOURCE_EXHAUSTED}}
	var none *contract.CreateMachineResponse
	for _, one := range [][2]string{
		{"OK", resultOf(context.Background(), &contract.CreateMachineResponse{}, nil)},
		{"ResourceExhausted", resultOf(context.Background(), refused, nil)},
		{"none", resultOf(context.Background(), none, errors.New("no answer"))},
		{"none", resultOf(over, refused, nil)},
	} {
		if one[0] != one[1] {
			t.Errorf("%s instead of %s", one[1], one[0])
		}
	}
}
