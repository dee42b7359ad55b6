package mcmprovider

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	grpccodes "google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"

	"machinist.example/mcm-provider/contract"
)

// service answers the contract with a provider of the original. What the interface does not promise is added here: fencing, turns, NotFound
// that can be believed, creations that find the VM that is there.
type service struct {
	contract.UnimplementedDriverServiceServer
	provider driver.Driver
	options  Options
	fencing  *Fencing
	secrets  *secrets
	turns    turns
	// One list of a class at a time, for the same reason.
	lists   turns
	unheard unheard
	pages   pages
	owners  owners

	mu sync.Mutex
	// Optional methods that the provider has answered with Unimplemented.
	missing map[string]bool
}

// optional methods of the contract. Every provider has them in Go; whether they do something is found out by the first call.
var optional = []string{"InitializeMachine", "ListMachines", "GetVolumeIDs"}

func (s *service) GetCapabilities(
	_ context.Context, in *contract.GetCapabilitiesRequest,
) (*contract.GetCapabilitiesResponse, error) {
	if !slices.Contains(in.GetContractVersions(), "v1") {
		failure := failed(contract.Code_CODE_FAILED_PRECONDITION, "this driver implements contract version v1")
		return &contract.GetCapabilitiesResponse{Failure: failure.contract("")}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &contract.GetCapabilitiesResponse{
		ContractVersion: "v1",
		Name:            s.options.Name,
		OptionalMethods: slices.DeleteFunc(slices.Clone(optional), func(method string) bool {
			return s.missing[method] || slices.Contains(s.options.Unimplemented, method)
		}),
		IdempotentCreate: s.options.IdempotentCreate,
		ListScope:        s.options.ListScope.contract(),
	}, nil
}

func (s *service) CreateMachine(ctx context.Context, in *contract.CreateMachineRequest) (*contract.CreateMachineResponse, error) {
	made, err := call(ctx, s, "CreateMachine", in, s.create)
	if failure := s.shown(err, in); failure != nil && failure.isCutShort {
		// By the contract, this status and no failure says that a VM may have been made.
		return nil, grpcstatus.Error(grpccodes.Aborted, failure.Message)
	}
	state := shownState(made.lastKnownState, in)
	failure := whenCreating(s.shown(err, in), made.vm.providerID != "")
	if failure == nil && made.vm.providerID == "" {
		failure = failed(contract.Code_CODE_INTERNAL, "the provider returned no provider ID for the VM that it has created")
	}
	return &contract.CreateMachineResponse{
		Failure: failure.contract(state), Vm: made.vm.contract(), LastKnownState: state,
	}, nil
}

func (s *service) InitializeMachine(
	ctx context.Context, in *contract.InitializeMachineRequest,
) (*contract.InitializeMachineResponse, error) {
	completed, err := call(ctx, s, "InitializeMachine", in, s.initialize)
	return &contract.InitializeMachineResponse{Failure: s.shown(err, in).contract(""), Vm: completed.vm.contract()}, nil
}

func (s *service) GetMachineStatus(
	ctx context.Context, in *contract.GetMachineStatusRequest,
) (*contract.GetMachineStatusResponse, error) {
	found, err := call(ctx, s, "GetMachineStatus", in, s.status)
	failure := s.shown(err, in)
	if (failure == nil || failure.Code == contract.Code_CODE_UNINITIALIZED) && found.vm.providerID == "" {
		failure = failed(contract.Code_CODE_INTERNAL, "the provider returned no provider ID for the VM that it has found")
	}
	return &contract.GetMachineStatusResponse{Failure: failure.contract(""), Vm: found.vm.contract()}, nil
}

func (s *service) DeleteMachine(ctx context.Context, in *contract.DeleteMachineRequest) (*contract.DeleteMachineResponse, error) {
	deleted, err := call(ctx, s, "DeleteMachine", in, s.delete)
	state := shownState(deleted.lastKnownState, in)
	return &contract.DeleteMachineResponse{Failure: s.shown(err, in).contract(state), LastKnownState: state}, nil
}

func (s *service) ListMachines(ctx context.Context, in *contract.ListMachinesRequest) (*contract.ListMachinesResponse, error) {
	machines, next, err := s.list(ctx, in)
	return &contract.ListMachinesResponse{
		Failure: notTheVM(s.shown(err, in)).contract(""), Machines: machines, NextPageToken: next,
	}, nil
}

func (s *service) GetVolumeIDs(ctx context.Context, in *contract.GetVolumeIDsRequest) (*contract.GetVolumeIDsResponse, error) {
	ids, err := await(ctx, "GetVolumeIDs", func() {}, func([]string, error) {}, func(ctx context.Context) ([]string, error) {
		volumes, err := volumesOf(in.GetVolumeSpecs())
		if err != nil {
			return nil, err
		}
		response, err := s.provider.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{PVSpecs: volumes})
		if response == nil {
			return nil, s.note("GetVolumeIDs", err)
		}
		return response.VolumeIDs, s.note("GetVolumeIDs", err)
	})
	return &contract.GetVolumeIDsResponse{Failure: failureOf(err).contract(""), VolumeIds: ids}, nil
}

// about is what requests about one machine have in common.
type about interface {
	GetCall() *contract.Call
	GetMachine() *contract.Machine
	GetMachineClass() *contract.MachineClass
	GetSecretData() map[string][]byte
}

// request is what the provider is given.
type request struct {
	owner   owner
	machine *v1alpha1.Machine
	class   *v1alpha1.MachineClass
	secret  map[string][]byte
}

// outcome of a call about one machine. A provider may return a VM together with an error.
type outcome struct {
	vm             vm
	lastKnownState string
	// Whether the VM was made by this call, and not found.
	isMade bool
	// Whether the provider was asked to make a VM.
	isAsked bool
	// Whether the VM is known from the list alone, which does not say whether it is complete.
	isListed bool
}

// call hands a request to the provider when it is the turn of its machine.
func call(
	ctx context.Context, s *service, method string, in about, do func(context.Context, *request) (outcome, error),
) (outcome, error) {
	machine, oddMachine := machineOf(in.GetMachine())
	class, oddClass := classOf(in.GetMachineClass())
	if err := s.accepts(in.GetMachineClass()); err != nil {
		return outcome{}, err
	}
	if machine.Name == "" {
		return outcome{}, failed(contract.Code_CODE_INVALID_ARGUMENT, "machine.metadata.name is missing")
	}
	if odd := cmp.Or(oddMachine, oddClass); odd != nil && (method == "CreateMachine" || method == "InitializeMachine") {
		return outcome{}, odd
	}
	asked := owner{cluster: in.GetCall().GetCluster(), namespace: machine.Namespace, uid: string(machine.UID)}
	name := asked.cluster + "/" + asked.namespace + "/" + machine.Name
	release, err := s.turns.take(ctx, name, method)
	if err != nil {
		return outcome{}, err
	}
	// When its turn has come, not before: another manager may have taken over while the call waited.
	if method != "GetMachineStatus" {
		if err := s.fencing.Admit(in.GetCall(), machine.Namespace); err != nil {
			release()
			return outcome{}, err
		}
	}
	show := s.secrets.hide(in.GetSecretData())
	late := func(result outcome, err error) {
		if result.isAsked {
			s.noteUnheard(in, result, err)
		}
	}
	ended := func() {
		show()
		release()
	}
	ctx = context.WithValue(ctx, clusterKey{}, in.GetCall().GetCluster())
	return await(ctx, method, ended, late, func(ctx context.Context) (outcome, error) {
		result, err := do(ctx, &request{owner: asked, machine: machine, class: class, secret: in.GetSecretData()})
		s.noteOwner(asked, result, err)
		if result.isAsked && !isMachine(result, err) && ctx.Err() != nil {
			s.noteUnheard(in, result, err)
			err = cutShort(err)
		}
		return result, s.note(method, err)
	})
}

// noteUnheard remembers what a creation has made whose time had passed before the provider returned.
func (s *service) noteUnheard(in about, result outcome, err error) {
	uid := in.GetMachine().GetUid()
	switch {
	case isMachine(result, err):
		s.unheard.remember(uid, result.vm)
	case !s.options.IdempotentCreate:
		s.unheard.remember(uid, vm{})
	}
}

// isMachine says whether a creation has made a VM, as the provider returned it.
func isMachine(made outcome, err error) bool {
	failure := failureOf(err)
	return made.vm.providerID != "" && (failure == nil || failure.Code == contract.Code_CODE_UNINITIALIZED)
}

// noteOwner remembers for which machine a VM was made, also if nobody hears of it.
func (s *service) noteOwner(asked owner, result outcome, err error) {
	switch {
	case result.isMade && isMachine(result, err):
		s.owners.note(result.vm.providerID, asked)
	case err == nil:
		s.owners.note(result.vm.providerID, owner{cluster: asked.cluster, namespace: asked.namespace})
	}
}

// create looks before it makes anything: the call may be a repeated one, and providers make a VM whenever they are asked for one.
func (s *service) create(ctx context.Context, in *request) (outcome, error) {
	if err := s.missesKey(in.secret); err != nil {
		return outcome{}, err
	}
	found, err := s.find(ctx, in)
	isIncomplete := err == nil && found.isListed && s.options.CompletesCreations
	switch failure := failureOf(err); {
	case isIncomplete:
	case failure == nil || !isNone(failure.Code):
		return found, err
	case failure.isForeign:
		// With a second VM of that name, the provider could tell neither from the other.
		return outcome{}, failed(contract.Code_CODE_ABORTED, "waiting for the VM of a machine of the same name to be deleted: %s", err)
	}
	if !isIncomplete && s.unheard.isInDoubt(string(in.machine.UID)) {
		return outcome{}, cutShort(failed(contract.Code_CODE_ABORTED,
			"waiting for the VM of an earlier CreateMachine to appear, whose time had passed before the provider returned"))
	}
	if ctx.Err() != nil {
		return outcome{}, failed(contract.Code_CODE_ABORTED, "the time of the call has passed before the provider was asked for a VM")
	}
	response, err := s.provider.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine: in.machine, MachineClass: in.class, Secret: secretOf(in.secret),
	})
	if response == nil {
		return outcome{isAsked: true}, err
	}
	made := vm{response.ProviderID, response.NodeName, response.Addresses}
	return outcome{vm: made, lastKnownState: response.LastKnownState, isMade: !isIncomplete, isAsked: true}, err
}

// find is status, or for a provider without GetMachineStatus what its list says.
func (s *service) find(ctx context.Context, in *request) (outcome, error) {
	found, err := s.status(ctx, in)
	if failure := failureOf(err); failure == nil || failure.Code != contract.Code_CODE_UNIMPLEMENTED {
		return found, err
	}
	listed, err := s.listed(ctx, in)
	if err != nil {
		return outcome{}, err
	}
	if refusal := s.owners.refuse(listed.ProviderID, in.owner); refusal != nil {
		return outcome{}, refusal
	}
	return outcome{vm: vm{providerID: listed.ProviderID, nodeName: listed.NodeName}, isListed: true}, nil
}

// listed is the VM that is listed with the name of the machine.
func (s *service) listed(ctx context.Context, in *request) (*driver.GetMachineStatusResponse, error) {
	list, err := s.listAll(ctx, in.class, in.secret)
	if err != nil {
		return nil, notTheVM(failureOf(err))
	}
	ids := []string{}
	for id, name := range list {
		if name == in.machine.Name {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return nil, failed(contract.Code_CODE_NOT_FOUND, "no VM is listed with the name of the machine")
	case 1:
		// The providers of which this is asked name Nodes so.
		return &driver.GetMachineStatusResponse{ProviderID: ids[0], NodeName: in.machine.Name}, nil
	default:
		return nil, failed(contract.Code_CODE_OUT_OF_RANGE, "several VMs are listed with the name of the machine: %s",
			strings.Join(slices.Sorted(slices.Values(ids)), ", "))
	}
}

// isNone says whether a machine has no VM yet, as far as the provider can say: one that cannot be asked is not asked.
func isNone(code contract.Code) bool {
	return code == contract.Code_CODE_NOT_FOUND || code == contract.Code_CODE_UNIMPLEMENTED
}

func (s *service) initialize(ctx context.Context, in *request) (outcome, error) {
	if refusal := s.owners.refuse(in.machine.Spec.ProviderID, in.owner); refusal != nil {
		return outcome{}, refusal
	}
	response, err := s.provider.InitializeMachine(ctx, &driver.InitializeMachineRequest{
		Machine: in.machine, MachineClass: in.class, Secret: secretOf(in.secret),
	})
	if response == nil {
		response = &driver.InitializeMachineResponse{}
	}
	completed := vm{response.ProviderID, response.NodeName, response.Addresses}
	return outcome{vm: completed.or(in.machine)}, err
}

// asked is what the provider says of the VM of a machine.
func (s *service) asked(ctx context.Context, in *request) (*driver.GetMachineStatusResponse, error) {
	if s.options.FindsByID && in.machine.Spec.ProviderID == "" {
		return s.listed(ctx, in)
	}
	return s.provider.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{
		Machine: in.machine, MachineClass: in.class, Secret: secretOf(in.secret),
	})
}

func (s *service) status(ctx context.Context, in *request) (outcome, error) {
	response, err := s.asked(ctx, in)
	if failure := failureOf(err); failure != nil && isNone(failure.Code) {
		if made, isThere := s.unheard.find(string(in.machine.UID)); isThere {
			return outcome{vm: made, isMade: true}, nil
		}
		return outcome{}, err
	}
	if response == nil {
		response = &driver.GetMachineStatusResponse{}
	}
	found := vm{response.ProviderID, response.NodeName, response.Addresses}.or(in.machine)
	if refusal := s.owners.refuse(found.providerID, in.owner); refusal != nil {
		return outcome{}, refusal
	}
	return outcome{vm: found}, err
}

func (s *service) delete(ctx context.Context, in *request) (outcome, error) {
	uid := string(in.machine.UID)
	made, isUnheard := s.unheard.find(uid)
	if isUnheard && in.machine.Spec.ProviderID == "" {
		in.machine.Spec.ProviderID = made.providerID
	}
	if err := s.mayDelete(ctx, in); err != nil {
		return outcome{}, err
	}
	unseen := failed(contract.Code_CODE_ABORTED, "waiting for the cloud to show the VM, which was made after its call had been given up")
	// Before it is deleted: of a VM that they do not see, some providers say that it is deleted.
	if isUnheard {
		if isShown, err := s.isShown(ctx, in); err != nil {
			return outcome{}, err
		} else if !isShown {
			return outcome{}, unseen
		}
	}
	response, err := s.provider.DeleteMachine(ctx, &driver.DeleteMachineRequest{
		Machine: in.machine, MachineClass: in.class, Secret: secretOf(in.secret),
	})
	failure := failureOf(err)
	isGone := failure == nil || failure.Code == contract.Code_CODE_NOT_FOUND
	if isUnheard && failure != nil && isGone {
		isGone = false
		err = unseen
	}
	if isGone {
		s.unheard.forget(uid)
		s.owners.forget(in.machine.Spec.ProviderID)
	}
	if response == nil {
		return outcome{}, err
	}
	return outcome{lastKnownState: response.LastKnownState}, err
}

// isShown says whether the provider shows the VM of a machine; one that cannot be asked does. It fails if the provider does not say.
func (s *service) isShown(ctx context.Context, in *request) (bool, error) {
	_, err := s.asked(ctx, in)
	failure := failureOf(err)
	if failure == nil {
		return true, nil
	}
	switch failure.Code {
	case contract.Code_CODE_NOT_FOUND:
		return false, nil
	case contract.Code_CODE_UNIMPLEMENTED, contract.Code_CODE_UNINITIALIZED, contract.Code_CODE_OUT_OF_RANGE:
		return true, nil
	default:
		return false, err
	}
}

// mayDelete asks for the VM of a machine without a provider ID first: providers delete all that have its name.
func (s *service) mayDelete(ctx context.Context, in *request) error {
	if id := in.machine.Spec.ProviderID; id != "" {
		return s.owners.refuse(id, in.owner)
	}
	found, err := s.status(ctx, in)
	failure := failureOf(err)
	switch {
	case failure != nil && failure.isForeign:
		return failure
	case !s.options.FindsByID || failure != nil && failure.Code == contract.Code_CODE_NOT_FOUND:
		return nil // what the provider deletes, or cannot find, it says itself
	default:
		in.machine.Spec.ProviderID = found.vm.providerID
		return err
	}
}

// list returns one page.
func (s *service) list(ctx context.Context, in *contract.ListMachinesRequest) ([]*contract.ListedMachine, string, error) {
	if err := s.accepts(in.GetMachineClass()); err != nil {
		return nil, "", err
	}
	class, _ := classOf(in.GetMachineClass())
	ctx = context.WithValue(ctx, clusterKey{}, in.GetCall().GetCluster())
	name := in.GetCall().GetCluster() + "/" + class.Namespace + "/" + class.Name
	all := func() (map[string]string, error) {
		release, err := s.lists.take(ctx, name, "ListMachines")
		if err != nil {
			return nil, err
		}
		show := s.secrets.hide(in.GetSecretData())
		ended := func() {
			show()
			release()
		}
		none := func(map[string]string, error) {}
		return await(ctx, "ListMachines", ended, none, func(ctx context.Context) (map[string]string, error) {
			return s.listAll(ctx, class, in.GetSecretData())
		})
	}
	page, next, err := s.pages.next(name, in.GetPageToken(), int(in.GetPageSize()), all)
	asked := owner{cluster: in.GetCall().GetCluster(), namespace: class.Namespace}
	machines := []*contract.ListedMachine{}
	for _, listed := range page {
		known := s.owners.of(listed.providerID, asked)
		if known.contradicts(asked) {
			continue
		}
		machines = append(machines, &contract.ListedMachine{
			ProviderId:       listed.providerID,
			MachineName:      listed.name,
			MachineUid:       known.uid,
			MachineNamespace: known.namespace,
		})
	}
	return machines, next, err
}

func (s *service) listAll(
	ctx context.Context, class *v1alpha1.MachineClass, secret map[string][]byte,
) (map[string]string, error) {
	response, err := s.provider.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class, Secret: secretOf(secret)})
	if response == nil && err == nil {
		err = failed(contract.Code_CODE_INTERNAL, "the provider returned no list")
	}
	if err != nil {
		return nil, s.note("ListMachines", err)
	}
	return response.MachineList, nil
}

// accepts refuses classes of other providers.
func (s *service) accepts(given *contract.MachineClass) error {
	if own := s.options.Provider; own != "" && given.GetProvider() != own {
		failure := failed(contract.Code_CODE_INVALID_ARGUMENT,
			"machineClass.provider: this driver serves %q, not %q; correct the class, or --driver of the manager", own, given.GetProvider())
		failure.Terminal = true
		return failure
	}
	return nil
}

// missesKey refuses a Secret without credentials.
func (s *service) missesKey(secret map[string][]byte) error {
	for _, keys := range s.options.SecretKeys {
		isThere := func(key string) bool { return len(bytes.TrimSpace(secret[key])) > 0 }
		if slices.ContainsFunc(keys, isThere) {
			continue
		}
		failure := failed(contract.Code_CODE_INVALID_ARGUMENT,
			"machineClass.secretRef: key %s is missing or empty; add it to the Secret", strings.Join(keys, " or "))
		failure.Terminal = true
		return failure
	}
	return nil
}

// note remembers an optional method that the provider does not have: from now on it is not among the capabilities.
func (s *service) note(method string, err error) error {
	if failure := failureOf(err); failure != nil && failure.Code == contract.Code_CODE_UNIMPLEMENTED {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.missing == nil {
			s.missing = map[string]bool{}
		}
		s.missing[method] = true
	}
	return err
}

// shown is a failure without what its message repeats of the request's Secret.
func (s *service) shown(err error, in interface{ GetSecretData() map[string][]byte }) *Failure {
	failure := failureOf(err)
	if failure == nil {
		return nil
	}
	clean := *failure
	clean.Message = strings.TrimSpace(withoutSecrets(failure.Message, piecesOf(in.GetSecretData())))
	return &clean
}

// shownState is the same of what the provider wants back: the manager stores it where everybody reads it who may read the Machine.
func shownState(state string, in interface{ GetSecretData() map[string][]byte }) string {
	return withoutSecrets(state, piecesOf(in.GetSecretData()))
}
