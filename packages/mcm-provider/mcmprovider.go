// Package mcmprovider serves a provider of Gardener's machine-controller-manager over the driver contract of Machinist, so that a manager
// of Machinist makes machines with it. A provider is what implements driver.Driver of the original's module; its program is
//
//	func main() { os.Exit(mcmprovider.Serve(aws.NewAWSDriver(&cpi.ClientProvider{}), mcmprovider.Options{Name: "aws", Provider: "AWS"})) }
//
//	mcmprovider.go  Serve and its options
//	program.go      flags, signals, metrics
//	service.go      the methods of the contract
//	objects.go      what the provider is given
//	failure.go      what its errors mean
//	turns.go        one call at a time for a machine
//	owners.go       VMs of other machines are neither shown nor deleted
//	unheard.go      VMs of creations whose caller had gone
//	pages.go        lists in pages
//	logs.go         its log lines, without secrets
//	fencing.go, serve.go, contract/ are generated from examples/drivers/go of this project
package mcmprovider

import (
	"context"
	"flag"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"machinist.example/mcm-provider/contract"
)

// ListScope says which VMs the provider returns from ListMachines.
type ListScope int

const (
	// ListScopeCluster is all VMs with the tags of the cluster, whatever class is asked for, as the public providers do it. It is the
	// default, because it is safe for both: no VM of another class is ever taken for one without a Machine.
	ListScopeCluster ListScope = iota
	// ListScopeClass is the VMs that were made from the class asked for, and no others.
	ListScopeClass
)

func (s ListScope) contract() contract.ListScope {
	if s == ListScopeClass {
		return contract.ListScope_LIST_SCOPE_CLASS
	}
	return contract.ListScope_LIST_SCOPE_CLUSTER
}

// Options describe a provider.
type Options struct {
	// Name of the driver in logs and metrics, such as "aws".
	Name string
	// Provider is the value of `provider` in the MachineClasses that the provider accepts, such as "AWS". Calls with another class are
	// refused before the provider sees them. Empty: the provider decides.
	Provider string
	// ListScope says which VMs ListMachines returns.
	ListScope ListScope
	// IdempotentCreate says that a creation that is repeated at once never makes a second VM, because the provider uses a token or a unique
	// name at the cloud. The public providers do not. Without it, the manager waits two minutes after a creation without an answer, or with a
	// failure that leaves open whether a VM was made, such as Internal.
	IdempotentCreate bool
	// SecretKeys are keys of the Secret without which no VM is made, for a provider that does not name them in its own errors. Of each list, one
	// is enough.
	SecretKeys [][]string
	// FindsByID says that the provider finds VMs by their IDs alone, also in CreateMachine. The VM of a machine without a provider ID is then
	// looked for in the list, before one is made or deleted.
	FindsByID bool
	// CompletesCreations says that CreateMachine finds a VM that has the name of the machine, and does what an earlier call for it has not
	// done any more. Without GetMachineStatus, nothing else says whether a VM is complete: where it is only listed, CreateMachine is called
	// again.
	CompletesCreations bool
	// Unimplemented names optional methods of the contract that the provider answers with Unimplemented. Others that it does not have are
	// found out by their first call.
	Unimplemented []string
	// Flags adds flags of the provider to those that every driver has.
	Flags func(*flag.FlagSet)
}

// Serve runs a provider as a driver until SIGTERM or SIGINT, with the flags of the command line. It returns the exit code of the program:
// 0 after an orderly end, 2 for flags that are missing or wrong, otherwise 1, with the reason on standard error.
func Serve(provider driver.Driver, options Options) int {
	return ServeNew(func(context.Context) (driver.Driver, error) { return provider, nil }, options)
}

// ServeNew is Serve for a provider that is made once the flags have been parsed. The context ends with the program.
func ServeNew(provider func(context.Context) (driver.Driver, error), options Options) int {
	return runProgram(provider, options)
}

// Older is a provider that was written before the interface had InitializeMachine.
type Older interface {
	CreateMachine(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error)
	DeleteMachine(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error)
	GetMachineStatus(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error)
	ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error)
	GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error)
}

// Complete answers InitializeMachine of an older provider with Unimplemented.
func Complete(provider Older) driver.Driver { return completed{provider} }

type completed struct{ Older }

func (completed) InitializeMachine(
	context.Context, *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "the provider has no InitializeMachine")
}

type clusterKey struct{}

// Cluster returns the identity of the cluster whose manager has made the call. A provider that tags its VMs with it keeps clusters apart
// that share an account, also where their classes have the same tags.
func Cluster(ctx context.Context) string {
	cluster, _ := ctx.Value(clusterKey{}).(string)
	return cluster
}
