// Package provider is a provider of machine-controller-manager for tests. Its cloud is that of examples/drivers/go, a folder in which each VM
// is a file: cloud.go is copied from there.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	mcmprovider "machinist.example/mcm-provider"
)

var creations = prometheus.NewCounter(prometheus.CounterOpts{Name: "folder_creations_total", Help: "VMs asked for."})

func init() { prometheus.MustRegister(creations) }

// Provider implements the interface of the original, as naively as its providers: CreateMachine makes a VM each time it is called.
type Provider struct{ Cloud *Cloud }

// New has its cloud in the folder that the environment names.
func New() driver.Driver {
	cloud := &Cloud{Folder: os.Getenv("FOLDER_CLOUD")}
	if err := cloud.Open(); err != nil {
		klog.Fatal(err)
	}
	return &Provider{Cloud: cloud}
}

func (p *Provider) CreateMachine(ctx context.Context, in *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	creations.Inc()
	klog.Infof("creating the VM of %s with %s", in.Machine.Name, in.Secret.Data["userData"])
	ends, err := p.fault(ctx, "CreateMachine", in.Secret.Data)
	if errors.Is(err, errTwice) {
		if _, err := p.CreateMachine(ctx, in); err != nil {
			return nil, err
		}
	} else if err != nil {
		return &driver.CreateMachineResponse{LastKnownState: "began"}, err
	}
	size, err := sizeIn(in.MachineClass.ProviderSpec.Raw)
	if err != nil {
		return nil, err
	}
	machine := in.Machine
	id := fmt.Sprintf("folder-driver:///%s/%s/%s/%s/%d", mcmprovider.Cluster(ctx), machine.Namespace, machine.Name, machine.UID, time.Now().UnixNano())
	made := &VM{
		ProviderID: id, Cluster: mcmprovider.Cluster(ctx), Namespace: machine.Namespace, ClassName: in.MachineClass.Name,
		MachineName: machine.Name, MachineUID: string(machine.UID), Size: size,
	}
	if err := p.Cloud.Create(ends, string(in.Secret.Data["token"]), made); err != nil {
		return nil, statusOf(err)
	}
	state := "made"
	if before := machine.Status.LastKnownState; before != "" {
		state += " after " + before
	}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: machine.Name, LastKnownState: state, Addresses: addresses}, nil
}

func (p *Provider) InitializeMachine(ctx context.Context, in *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if _, err := p.fault(ctx, "InitializeMachine", in.Secret.Data); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.Unimplemented, "not needed")
}

func (p *Provider) GetMachineStatus(ctx context.Context, in *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	ends, err := p.fault(ctx, "GetMachineStatus", in.Secret.Data)
	if own, isOwn := err.(*status.Status); isOwn && own.Code() == codes.Uninitialized {
		return &driver.GetMachineStatusResponse{ProviderID: "folder-driver:///" + in.Machine.Name, NodeName: in.Machine.Name}, err
	}
	lies := errors.Is(err, errLie)
	if err != nil && !lies {
		return nil, err
	}
	vms, err := p.vmsOf(ends, in.Machine, string(in.Secret.Data["token"]))
	if lies {
		vms, err = p.Cloud.List(ends, string(in.Secret.Data["token"]))
		vms = vms[:1]
	}
	switch {
	case err != nil:
		return nil, statusOf(err)
	case len(vms) == 0:
		return nil, status.Error(codes.NotFound, "there is no VM of machine "+in.Machine.Name)
	case len(vms) > 1:
		return nil, status.Error(codes.OutOfRange, "several VMs match machine "+in.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: vms[0].ProviderID, NodeName: vms[0].MachineName}, nil
}

func (p *Provider) DeleteMachine(ctx context.Context, in *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	ends, err := p.fault(ctx, "DeleteMachine", in.Secret.Data)
	if err != nil {
		return nil, err
	}
	token := string(in.Secret.Data["token"])
	vms, err := p.vmsOf(ends, in.Machine, token)
	if err != nil {
		return nil, statusOf(err)
	}
	for _, vm := range vms {
		if err := p.Cloud.Delete(ends, token, vm.ProviderID); err != nil && !errors.Is(err, ErrNoSuchVM) {
			return nil, statusOf(err)
		}
	}
	return &driver.DeleteMachineResponse{}, nil
}

// ListMachines returns all VMs of the cluster, for any class, as the public providers do it.
func (p *Provider) ListMachines(ctx context.Context, in *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	ends, err := p.fault(ctx, "ListMachines", in.Secret.Data)
	if err != nil {
		return nil, err
	}
	vms, err := p.Cloud.List(ends, string(in.Secret.Data["token"]))
	if err != nil {
		return nil, statusOf(err)
	}
	list := map[string]string{}
	for _, vm := range vms {
		if vm.Cluster == mcmprovider.Cluster(ctx) && vm.Namespace == in.MachineClass.Namespace {
			list[vm.ProviderID] = vm.MachineName
		}
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

func (p *Provider) GetVolumeIDs(_ context.Context, in *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	ids := []string{}
	for _, spec := range in.PVSpecs {
		if spec.CSI != nil && spec.CSI.Driver == "folder-driver" {
			ids = append(ids, spec.CSI.VolumeHandle)
		}
	}
	return &driver.GetVolumeIDsResponse{VolumeIDs: ids}, nil
}

func (p *Provider) vmsOf(ctx context.Context, machine *v1alpha1.Machine, token string) ([]*VM, error) {
	vms, err := p.Cloud.List(ctx, token)
	found := []*VM{}
	for _, vm := range vms {
		if isVMOf(vm, mcmprovider.Cluster(ctx), machine) {
			found = append(found, vm)
		}
	}
	return found, err
}

func isVMOf(vm *VM, cluster string, machine *v1alpha1.Machine) bool {
	uid, id := string(machine.UID), machine.Spec.ProviderID
	if !agrees(vm.Cluster, cluster) || !agrees(vm.Namespace, machine.Namespace) || uid != "" && !agrees(vm.MachineUID, uid) {
		return false
	}
	if id != "" && vm.ProviderID == id {
		return uid == "" || vm.MachineUID != "" || agrees(vm.MachineName, machine.Name)
	}
	return (uid != "" || id == "") && vm.MachineName == machine.Name
}

func agrees(tag, wanted string) bool { return tag == "" || tag == wanted }

func sizeIn(providerSpec []byte) (string, error) {
	spec := struct{ Size any }{Size: "small"}
	size, isText := "", false
	if json.Unmarshal(providerSpec, &spec) == nil {
		size, isText = spec.Size.(string)
	}
	if !isText {
		return "", status.Error(codes.InvalidArgument, "providerSpec.size: must be a text")
	}
	return size, nil
}

func statusOf(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, ErrUnauthorized):
		return status.Error(codes.Unauthenticated, err.Error())
	case errors.Is(err, syscall.ENOSPC):
		return status.Error(codes.ResourceExhausted, err.Error())
	default:
		return status.Error(codes.Internal, err.Error())
	}
}

var errTwice, errLie = errors.New("twice"), errors.New("lie")

// fault does what the file of the method in the folder `faults` of the cloud says, once. The context that it returns is the one to
// continue with.
func (p *Provider) fault(ctx context.Context, method string, secret map[string][]byte) (context.Context, error) {
	file := filepath.Join(p.Cloud.Folder, "faults", method)
	what, err := os.ReadFile(file)
	if err != nil || os.Remove(file) != nil {
		return ctx, nil
	}
	token := string(secret["token"])
	switch string(what) {
	case "panic":
		panic("nil map with " + token)
	case "fatal":
		klog.Fatalf("cannot continue with %s", token)
	case "hang": // beyond its context until the test says so, and then does it all the same
		for _, err := os.Stat(file + ".end"); err != nil; _, err = os.Stat(file + ".end") {
			time.Sleep(20 * time.Millisecond)
		}
		return context.WithoutCancel(ctx), os.Remove(file + ".end")
	case "subnet": // of a VM that exists
		return ctx, fmt.Errorf("describing the VM: %w", status.Error(codes.NotFound, "subnet not found"))
	case "text":
		return ctx, errors.New("machine codes error: code = [NotFound] message = [subnet not found]")
	case "image":
		return ctx, status.Error(codes.NotFound, "image not found")
	case "blind": // does not show what exists
		return ctx, status.Error(codes.NotFound, "not visible yet")
	case "twice": // makes two VMs
		return ctx, errTwice
	case "lie": // shows the VM of another machine
		return ctx, errLie
	case "several":
		return ctx, status.Error(codes.OutOfRange, "two VMs")
	case "uninitialized":
		return ctx, status.Error(codes.Uninitialized, "source check is on")
	case "unimplemented":
		return ctx, status.Error(codes.Unimplemented, "no such method")
	case "quota":
		return ctx, status.Error(codes.ResourceExhausted, "quota exceeded for "+token)
	}
	return ctx, fmt.Errorf("unknown fault %q", what)
}

// writeSynced is what cloud.go expects of its driver. No test here crashes the host.
func writeSynced(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }
