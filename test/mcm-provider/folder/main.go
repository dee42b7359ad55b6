// The program of pkg/provider, with all that the library has.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"

	"folder-driver/pkg/provider"

	mcmprovider "machinist.example/mcm-provider"
)

func main() {
	cloud := &provider.Cloud{}
	options := mcmprovider.Options{
		Name:             "folder-driver",
		Provider:         "folder-driver",
		IdempotentCreate: os.Getenv("IDEMPOTENT_CREATE") != "false",
		Unimplemented:    []string{"InitializeMachine"},
		Flags: func(set *flag.FlagSet) {
			set.StringVar(&cloud.Folder, "cloud", "", "the folder that is the provider")
			set.DurationVar(&cloud.Latency, "cloud-latency", time.Duration(0), "how long each request to the provider takes")
		},
	}
	open := func(context.Context) (driver.Driver, error) { return &provider.Provider{Cloud: cloud}, cloud.Open() }
	os.Exit(mcmprovider.ServeNew(open, options))
}
