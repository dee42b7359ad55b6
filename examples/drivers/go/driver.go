package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"syscall"

	"example.com/folder-driver/contract"
)

// Driver answers the contract. It remembers nothing that the provider does not remember, but for fencing tokens. Methods that are not
// here (InitializeMachine) are answered with UNIMPLEMENTED, and GetCapabilities does not name them.
type Driver struct {
	contract.UnimplementedDriverServiceServer
	Cloud   *Cloud
	Fencing *Fencing
}

// GetCapabilities is asked on each new connection: cheap, and without the provider.
func (d *Driver) GetCapabilities(_ context.Context, in *contract.GetCapabilitiesRequest) (*contract.GetCapabilitiesResponse, error) {
	if !slices.Contains(in.GetContractVersions(), "v1") {
		failure := &Failure{Code: contract.Code_CODE_FAILED_PRECONDITION, Message: "this driver speaks contract version v1"}
		return &contract.GetCapabilitiesResponse{Failure: failureOf(failure)}, nil
	}
	return &contract.GetCapabilitiesResponse{
		ContractVersion:  "v1",
		Name:             "folder-driver",
		OptionalMethods:  []string{"ListMachines", "GetVolumeIDs"},
		IdempotentCreate: true,
		ListScope:        contract.ListScope_LIST_SCOPE_CLASS,
	}, nil
}

func (d *Driver) CreateMachine(ctx context.Context, in *contract.CreateMachineRequest) (*contract.CreateMachineResponse, error) {
	vm, err := d.create(ctx, in)
	return &contract.CreateMachineResponse{Failure: failureOf(err), Vm: shown(vm)}, nil
}

func (d *Driver) GetMachineStatus(ctx context.Context, in *contract.GetMachineStatusRequest) (*contract.GetMachineStatusResponse, error) {
	vm, err := d.find(ctx, in)
	return &contract.GetMachineStatusResponse{Failure: failureOf(err), Vm: shown(vm)}, nil
}

func (d *Driver) DeleteMachine(ctx context.Context, in *contract.DeleteMachineRequest) (*contract.DeleteMachineResponse, error) {
	return &contract.DeleteMachineResponse{Failure: failureOf(d.delete(ctx, in))}, nil
}

func (d *Driver) ListMachines(ctx context.Context, in *contract.ListMachinesRequest) (*contract.ListMachinesResponse, error) {
	machines, next, err := d.list(ctx, in)
	return &contract.ListMachinesResponse{Failure: failureOf(err), Machines: machines, NextPageToken: next}, nil
}

// GetVolumeIDs names those volumes that are the provider's, in the order asked for.
func (d *Driver) GetVolumeIDs(_ context.Context, in *contract.GetVolumeIDsRequest) (*contract.GetVolumeIDsResponse, error) {
	ids := []string{}
	for _, text := range in.GetVolumeSpecs() {
		var spec struct {
			CSI struct{ Driver, VolumeHandle string }
		}
		if json.Unmarshal(text, &spec) == nil && spec.CSI.Driver == "folder-driver" {
			ids = append(ids, spec.CSI.VolumeHandle)
		}
	}
	return &contract.GetVolumeIDsResponse{VolumeIds: ids}, nil
}

func (d *Driver) create(ctx context.Context, in *contract.CreateMachineRequest) (*VM, error) {
	machine, class := in.GetMachine(), in.GetMachineClass()
	if err := d.Fencing.Admit(in.GetCall(), machine.GetNamespace()); err != nil {
		return nil, err
	}
	if !machineName.MatchString(machine.GetName()) {
		return nil, invalid("machine.metadata.name: must be a DNS subdomain")
	}
	size, err := sizeIn(class.GetProviderSpec())
	if err != nil {
		return nil, err
	}
	// Look before you make: the call may be a repeated one.
	found, err := d.find(ctx, in)
	if code := failureOf(err).GetCode(); code != contract.Code_CODE_NOT_FOUND {
		return found, err
	}
	cluster, namespace, name, uid := in.GetCall().GetCluster(), machine.GetNamespace(), machine.GetName(), machine.GetUid()
	vm := &VM{
		ProviderID:  fmt.Sprintf("folder-driver:///%s/%s/%s/%s", cluster, namespace, name, uid),
		Cluster:     cluster,
		Namespace:   namespace,
		ClassName:   class.GetName(),
		MachineName: name,
		MachineUID:  uid,
		Size:        size,
	}
	// A real VM is started with in.GetSecretData()["userData"].
	err = d.Cloud.Create(ctx, tokenIn(in.GetSecretData()), vm)
	if errors.Is(err, ErrNameTaken) {
		// Another call makes it at this moment. This one is asked again, and then finds it.
		return nil, &Failure{Code: contract.Code_CODE_ABORTED, Message: "another call makes the VM of this machine"}
	}
	if err != nil {
		return nil, err
	}
	slog.Info("made a VM", "machine", namespace+"/"+name, "providerID", vm.ProviderID)
	return vm, nil
}

// find returns the one VM of a machine.
func (d *Driver) find(ctx context.Context, in aboutMachine) (*VM, error) {
	vms, err := d.vmsOf(ctx, in)
	name := in.GetMachine().GetNamespace() + "/" + in.GetMachine().GetName()
	switch {
	case err != nil:
		return nil, err
	case len(vms) == 0:
		return nil, &Failure{Code: contract.Code_CODE_NOT_FOUND, Message: "there is no VM of machine " + name}
	case len(vms) > 1:
		return nil, &Failure{Code: contract.Code_CODE_OUT_OF_RANGE, Message: "several VMs match machine " + name}
	}
	return vms[0], nil
}

func (d *Driver) delete(ctx context.Context, in *contract.DeleteMachineRequest) error {
	if err := d.Fencing.Admit(in.GetCall(), in.GetMachine().GetNamespace()); err != nil {
		return err
	}
	vms, err := d.vmsOf(ctx, in)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		err := d.Cloud.Delete(ctx, tokenIn(in.GetSecretData()), vm.ProviderID)
		if err != nil && !errors.Is(err, ErrNoSuchVM) {
			return err
		}
		slog.Info("deleted a VM", "providerID", vm.ProviderID)
	}
	return nil
}

// list returns one page of a class. The token of the next page is the last ID of this one: a VM that is there throughout is on one of
// them, whatever comes and goes meanwhile.
func (d *Driver) list(ctx context.Context, in *contract.ListMachinesRequest) ([]*contract.ListedMachine, string, error) {
	vms, err := d.Cloud.List(ctx, tokenIn(in.GetSecretData()))
	if err != nil {
		return nil, "", err
	}
	class := in.GetMachineClass()
	vms = slices.DeleteFunc(vms, func(vm *VM) bool {
		// What is listed and has no machine is deleted: never one of another cluster or namespace. With LIST_SCOPE_CLUSTER the class
		// would not be compared.
		return vm.Cluster != in.GetCall().GetCluster() || vm.Namespace != class.GetNamespace() ||
			vm.ClassName != class.GetName() || vm.ProviderID <= in.GetPageToken()
	})
	slices.SortFunc(vms, func(a, b *VM) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	next := ""
	if size := int(in.GetPageSize()); size > 0 && len(vms) > size {
		vms = vms[:size]
		next = vms[size-1].ProviderID
	}
	machines := []*contract.ListedMachine{}
	for _, vm := range vms {
		machines = append(machines, &contract.ListedMachine{
			ProviderId:       vm.ProviderID,
			MachineName:      vm.MachineName,
			MachineUid:       vm.MachineUID,
			MachineNamespace: vm.Namespace,
		})
	}
	return machines, next, nil
}

// aboutMachine is what requests about one machine have in common.
type aboutMachine interface {
	GetCall() *contract.Call
	GetMachine() *contract.Machine
	GetSecretData() map[string][]byte
}

func (d *Driver) vmsOf(ctx context.Context, in aboutMachine) ([]*VM, error) {
	vms, err := d.Cloud.List(ctx, tokenIn(in.GetSecretData()))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(vms, func(vm *VM) bool { return !isVMOf(vm, in.GetCall().GetCluster(), in.GetMachine()) }), nil
}

// isVMOf says whether a VM is that of a machine (rule 1): a missing tag is no contradiction, another UID, namespace or cluster is.
func isVMOf(vm *VM, cluster string, machine *contract.Machine) bool {
	uid, id := machine.GetUid(), machine.GetProviderId()
	if !agrees(vm.Cluster, cluster) || !agrees(vm.Namespace, machine.GetNamespace()) {
		return false
	}
	if uid != "" && !agrees(vm.MachineUID, uid) {
		return false
	}
	if id != "" && vm.ProviderID == id {
		// An ID alone proves nothing: a VM without UID that has another name is another machine's. A stub means exactly this VM.
		return uid == "" || vm.MachineUID != "" || agrees(vm.MachineName, machine.GetName())
	}
	// A VM without a machine is meant by its ID alone: its name may be another machine's by now.
	if uid == "" && id != "" {
		return false
	}
	return vm.MachineName == machine.GetName()
}

// agrees says whether a tag does not contradict: VMs of other tools lack it.
func agrees(tag, wanted string) bool { return tag == "" || tag == wanted }

// shown is a VM as the manager sees it. A real one also has addresses.
func shown(vm *VM) *contract.VirtualMachine {
	if vm == nil {
		return nil
	}
	return &contract.VirtualMachine{ProviderId: vm.ProviderID, NodeName: vm.MachineName}
}

// What Kubernetes allows as a name.
var machineName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)

// sizeIn reads the settings of the class; of a wrong one the answer names the member.
func sizeIn(providerSpec []byte) (string, error) {
	spec := struct{ Size any }{Size: "small"}
	if err := json.Unmarshal(providerSpec, &spec); err != nil {
		return "", invalid("providerSpec: must be an object")
	}
	if size, isText := spec.Size.(string); isText {
		return size, nil
	}
	return "", invalid("providerSpec.size: must be a text")
}

// tokenIn is used for the one call it came with. A secret is never logged, kept or repeated in an answer.
func tokenIn(secret map[string][]byte) string { return string(secret["token"]) }

// Failure is what the field `failure` of an answer says.
type Failure struct {
	Code    contract.Code
	Message string
	// Asking again with the same machine, class and secret cannot succeed.
	Terminal     bool
	HighestToken uint64
}

func (f *Failure) Error() string { return f.Message }

func invalid(message string) error {
	return &Failure{Code: contract.Code_CODE_INVALID_ARGUMENT, Message: message, Terminal: true}
}

// failureOf says which kind of failure an error is; the manager chooses by it how soon it asks again. Only a certain "there is none" is
// NotFound. Failures are part of an answer: a gRPC status would say that nobody knows what happened.
func failureOf(err error) *contract.Failure {
	var failure *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return &contract.Failure{
			Code: failure.Code, Message: failure.Message, Terminal: failure.Terminal, FencingToken: failure.HighestToken,
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &contract.Failure{Code: contract.Code_CODE_ABORTED, Message: "given up in time; what was begun is found by the next call"}
	case errors.Is(err, ErrUnauthorized):
		return &contract.Failure{Code: contract.Code_CODE_UNAUTHENTICATED, Message: err.Error()}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &contract.Failure{Code: contract.Code_CODE_RESOURCE_EXHAUSTED, Message: err.Error()}
	default:
		return &contract.Failure{Code: contract.Code_CODE_INTERNAL, Message: err.Error()}
	}
}
