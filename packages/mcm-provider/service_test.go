package mcmprovider

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"machinist.example/mcm-provider/contract"
)

// scripted returns what it is told to, and keeps what it was given.
type scripted struct {
	create     *driver.CreateMachineResponse
	initialize *driver.InitializeMachineResponse
	status     *driver.GetMachineStatusResponse
	deletion   *driver.DeleteMachineResponse
	list       *driver.ListMachinesResponse
	volumes    *driver.GetVolumeIDsResponse
	// By method.
	errors map[string]error
	asked  []string
	given  *driver.CreateMachineRequest
}

func (p *scripted) answer(method string) error {
	p.asked = append(p.asked, method)
	return p.errors[method]
}

func (p *scripted) CreateMachine(_ context.Context, in *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.given = in
	return p.create, p.answer("CreateMachine")
}

func (p *scripted) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return p.initialize, p.answer("InitializeMachine")
}

func (p *scripted) GetMachineStatus(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return p.status, p.answer("GetMachineStatus")
}

func (p *scripted) DeleteMachine(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return p.deletion, p.answer("DeleteMachine")
}

func (p *scripted) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return p.list, p.answer("ListMachines")
}

func (p *scripted) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return p.volumes, p.answer("GetVolumeIDs")
}

// absent is a provider that has no VM yet.
func absent() *scripted {
	return &scripted{errors: map[string]error{"GetMachineStatus": status.Error(codes.NotFound, "none")}}
}

var anywhere = &contract.Call{Cluster: "c"}

func TestASuccessOfWhichTheProviderNamesNoVMIsAFailure(t *testing.T) {
	provider := absent()
	provider.create = &driver.CreateMachineResponse{NodeName: "m"}
	s := serviceOf(t, provider)
	if made, _ := s.CreateMachine(context.Background(), creation("1")); made.Failure.GetCode() != contract.Code_CODE_INTERNAL {
		t.Errorf("of a creation: %v", made)
	}
	for name, err := range map[string]error{"success": nil, "Uninitialized": status.Error(codes.Uninitialized, "wait")} {
		provider.errors["GetMachineStatus"] = err
		in := &contract.GetMachineStatusRequest{Call: anywhere, Machine: machine("n", "m", "1", "")}
		if found, _ := s.GetMachineStatus(context.Background(), in); found.Failure.GetCode() != contract.Code_CODE_INTERNAL {
			t.Errorf("of a status with %s: %v", name, found)
		}
	}
}

func TestTheVMOfTheMachineIsMeantWhereTheProviderNamesNone(t *testing.T) {
	provider := &scripted{errors: map[string]error{"GetMachineStatus": status.Error(codes.Uninitialized, "wait")}}
	s := serviceOf(t, provider)
	asked := machine("n", "m", "1", "id-m")
	asked.Json = []byte(`{"metadata": {"labels": {"node": "node-m"}}}`)
	found, _ := s.GetMachineStatus(context.Background(), &contract.GetMachineStatusRequest{Call: anywhere, Machine: asked})
	if found.Failure.GetCode() != contract.Code_CODE_UNINITIALIZED || found.Vm.GetProviderId() != "id-m" || found.Vm.GetNodeName() != "node-m" {
		t.Errorf("of a status: %v", found)
	}
	completed, _ := s.InitializeMachine(context.Background(), &contract.InitializeMachineRequest{Call: anywhere, Machine: asked})
	if completed.Failure != nil || completed.Vm.GetProviderId() != "id-m" || completed.Vm.GetNodeName() != "node-m" {
		t.Errorf("of an initialization: %v", completed)
	}
	known, _ := machineOf(asked)
	other := vm{providerID: "id-other"}.or(known)
	if other.nodeName != "" {
		t.Errorf("the Node of one VM is that of another: %v", other)
	}
}

func TestAClassOfAnotherProviderIsRefusedForGoodInEveryMethod(t *testing.T) {
	provider := &scripted{}
	s := serviceOf(t, provider)
	s.options.Provider = "AWS"
	ctx, class := context.Background(), &contract.MachineClass{Name: "class", Provider: "GCP"}
	in := machine("n", "m", "1", "")
	made, _ := s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: anywhere, Machine: in, MachineClass: class})
	completed, _ := s.InitializeMachine(ctx, &contract.InitializeMachineRequest{Call: anywhere, Machine: in, MachineClass: class})
	found, _ := s.GetMachineStatus(ctx, &contract.GetMachineStatusRequest{Call: anywhere, Machine: in, MachineClass: class})
	deleted, _ := s.DeleteMachine(ctx, &contract.DeleteMachineRequest{Call: anywhere, Machine: in, MachineClass: class})
	list, _ := s.ListMachines(ctx, &contract.ListMachinesRequest{Call: anywhere, MachineClass: class})
	for _, failure := range []*contract.Failure{made.Failure, completed.Failure, found.Failure, deleted.Failure, list.Failure} {
		if failure.GetCode() != contract.Code_CODE_INVALID_ARGUMENT || !failure.GetTerminal() ||
			!strings.Contains(failure.GetMessage(), `this driver serves "AWS", not "GCP"; correct the class`) {
			t.Errorf("%v", failure)
		}
	}
	if len(provider.asked) > 0 {
		t.Errorf("the provider is asked for %v", provider.asked)
	}
}

func TestASecretWithoutAKeyIsRefusedBeforeAVMIsMade(t *testing.T) {
	provider := absent()
	provider.create = &driver.CreateMachineResponse{ProviderID: "id-m"}
	s := serviceOf(t, provider)
	s.options.SecretKeys = [][]string{{"keyID", "accessKeyID"}, {"secret"}}
	for want, secret := range map[string]map[string][]byte{
		"key keyID or accessKeyID is missing or empty": {"secret": []byte("s")},
		"key secret is missing or empty; add it":       {"accessKeyID": []byte("a"), "secret": []byte("\n")},
	} {
		in := creation("1")
		in.SecretData = secret
		made, _ := s.CreateMachine(context.Background(), in)
		if !strings.Contains(made.Failure.GetMessage(), want) || made.Failure.GetCode() != contract.Code_CODE_INVALID_ARGUMENT || !made.Failure.GetTerminal() {
			t.Errorf("%v", made)
		}
	}
	if len(provider.asked) > 0 {
		t.Errorf("the provider is asked for %v", provider.asked)
	}
	in := creation("1")
	in.SecretData = map[string][]byte{"accessKeyID": []byte("a"), "secret": []byte("s")}
	if made, _ := s.CreateMachine(context.Background(), in); made.Failure != nil {
		t.Errorf("with all of them: %v", made)
	}
}

func TestARequestWithoutTheNameOfAMachineIsRefused(t *testing.T) {
	provider := &scripted{}
	s := serviceOf(t, provider)
	refused, _ := s.DeleteMachine(context.Background(), &contract.DeleteMachineRequest{Machine: machine("n", "", "", "id-m")})
	if refused.Failure.GetCode() != contract.Code_CODE_INVALID_ARGUMENT || len(provider.asked) > 0 {
		t.Errorf("%v, asked for %v", refused, provider.asked)
	}
}

func TestWhatIsNotFoundWhileAListIsReadIsNoVM(t *testing.T) {
	provider := &scripted{errors: map[string]error{
		"GetMachineStatus": status.Error(codes.Unimplemented, "no"), "ListMachines": status.Error(codes.NotFound, "resource group"),
	}}
	s := serviceOf(t, provider)
	list, _ := s.ListMachines(context.Background(), &contract.ListMachinesRequest{MachineClass: &contract.MachineClass{Name: "class"}})
	made, _ := s.CreateMachine(context.Background(), creation("1"))
	for _, failure := range []*contract.Failure{list.Failure, made.Failure} {
		if failure.GetCode() != contract.Code_CODE_FAILED_PRECONDITION {
			t.Errorf("%v", failure)
		}
	}
	if slices.Contains(provider.asked, "CreateMachine") {
		t.Error("a VM is made although the list could not be read")
	}
	provider.errors["ListMachines"] = nil
	if list, _ := s.ListMachines(context.Background(), &contract.ListMachinesRequest{}); list.Failure.GetCode() != contract.Code_CODE_INTERNAL {
		t.Errorf("a list that is none: %v", list)
	}
}

func TestAProviderThatListsSeveralVMsOfAMachineIsNotAskedForAnother(t *testing.T) {
	provider := &scripted{
		errors: map[string]error{"GetMachineStatus": status.Error(codes.Unimplemented, "no")},
		list:   &driver.ListMachinesResponse{MachineList: map[string]string{"b": "m", "a": "m", "c": "other"}},
	}
	s := serviceOf(t, provider)
	made, _ := s.CreateMachine(context.Background(), creation("1"))
	if made.Failure.GetCode() != contract.Code_CODE_OUT_OF_RANGE || !strings.HasSuffix(made.Failure.GetMessage(), ": a, b") {
		t.Errorf("%v", made)
	}
}

func TestAProviderThatCanNeitherFindNorListIsAskedForAVM(t *testing.T) {
	none := status.Error(codes.Unimplemented, "no")
	provider := &scripted{
		errors: map[string]error{"GetMachineStatus": none, "ListMachines": none},
		create: &driver.CreateMachineResponse{ProviderID: "id-m"},
	}
	s := serviceOf(t, provider)
	if made, _ := s.CreateMachine(context.Background(), creation("1")); made.Vm.GetProviderId() != "id-m" {
		t.Errorf("%v", made)
	}
	capabilities, _ := s.GetCapabilities(context.Background(), &contract.GetCapabilitiesRequest{ContractVersions: []string{"v1"}})
	if got := capabilities.OptionalMethods; !slices.Equal(got, []string{"InitializeMachine", "GetVolumeIDs"}) {
		t.Errorf("then it has %v", got)
	}
	s.options.Unimplemented = []string{"GetVolumeIDs"}
	capabilities, _ = s.GetCapabilities(context.Background(), &contract.GetCapabilitiesRequest{ContractVersions: []string{"v1"}})
	if got := capabilities.OptionalMethods; !slices.Equal(got, []string{"InitializeMachine"}) {
		t.Errorf("without what it is known not to have, it has %v", got)
	}
	later, _ := s.GetCapabilities(context.Background(), &contract.GetCapabilitiesRequest{ContractVersions: []string{"v2"}})
	if later.Failure.GetCode() != contract.Code_CODE_FAILED_PRECONDITION {
		t.Errorf("to a manager of another version: %v", later)
	}
}

func TestStateOfTheProviderComesBackFromCreationsAndDeletionsAlsoFromThoseThatFail(t *testing.T) {
	provider := absent()
	provider.create = &driver.CreateMachineResponse{LastKnownState: "began"}
	provider.deletion = &driver.DeleteMachineResponse{LastKnownState: "disks"}
	provider.errors["CreateMachine"] = status.Error(codes.Internal, "odd")
	provider.errors["DeleteMachine"] = status.Error(codes.Internal, "odd")
	s := serviceOf(t, provider)
	made, _ := s.CreateMachine(context.Background(), creation("1"))
	deleted, _ := s.DeleteMachine(context.Background(), deletion("1"))
	if made.Failure.GetLastKnownState() != "began" || deleted.Failure.GetLastKnownState() != "disks" || deleted.GetLastKnownState() != "disks" {
		t.Errorf("%v, %v", made, deleted)
	}
}

func TestTheFieldsOfTheContractWinOverTheObjects(t *testing.T) {
	provider := absent()
	provider.create = &driver.CreateMachineResponse{
		ProviderID: "id-m", Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "m.example"}},
	}
	s := serviceOf(t, provider)
	in := creation("1")
	in.Machine.Json = []byte(`{"metadata": {"name": "a", "namespace": "b", "uid": "c", "labels": {"k": "v"}}, "spec": {"providerID": "d"}}`)
	in.MachineClass = &contract.MachineClass{
		Namespace: "n", Name: "class", Provider: "P", ProviderSpec: []byte(`{"size": 1}`),
		Json: []byte(`{"metadata": {"name": "a"}, "providerSpec": {"size": 2}, "provider": "Q"}`),
	}
	in.SecretData = map[string][]byte{"userData": []byte("#!/bin/sh")}
	made, _ := s.CreateMachine(context.Background(), in)
	if got := made.GetVm().GetAddresses(); len(got) != 1 || got[0].Type != "Hostname" || got[0].Address != "m.example" {
		t.Errorf("addresses %v", got)
	}
	given, class := provider.given.Machine, provider.given.MachineClass
	if given.Name != "m" || given.Namespace != "n" || given.UID != "1" || given.Spec.ProviderID != "" || given.Labels["k"] != "v" {
		t.Errorf("%v", given)
	}
	if class.Name != "class" || class.Namespace != "n" || class.Provider != "P" || string(class.ProviderSpec.Raw) != `{"size": 1}` {
		t.Errorf("%v", class)
	}
	if string(provider.given.Secret.Data["userData"]) != "#!/bin/sh" {
		t.Errorf("%v", provider.given.Secret)
	}
}

func TestAVMThatWasFoundIsThatOfAnyLaterMachineOfItsName(t *testing.T) {
	provider := &byName{names: []string{"m"}}
	s := serviceOf(t, provider)
	for _, uid := range []string{"1", "2"} {
		in := &contract.GetMachineStatusRequest{Call: anywhere, Machine: machine("n", "m", uid, "id-m")}
		if found, _ := s.GetMachineStatus(context.Background(), in); found.Failure != nil {
			t.Errorf("for the machine with UID %s: %v", uid, found)
		}
	}
}

func TestATurnIsGivenBackByACallThatIsFencedOff(t *testing.T) {
	s := serviceOf(t, absent())
	newer, older := &contract.Call{Cluster: "c", FencingToken: 2}, &contract.Call{Cluster: "c", FencingToken: 1}
	for _, call := range []*contract.Call{newer, older, newer} {
		in := deletion("1")
		in.Call = call
		deleted, _ := s.DeleteMachine(context.Background(), in)
		if refused := deleted.Failure.GetFencingToken() == 2; refused != (call == older) {
			t.Errorf("with token %d: %v", call.FencingToken, deleted)
		}
	}
	read, _ := s.GetMachineStatus(context.Background(), &contract.GetMachineStatusRequest{Call: older, Machine: machine("n", "m", "1", "")})
	if read.Failure.GetCode() != contract.Code_CODE_NOT_FOUND {
		t.Errorf("what changes nothing is refused: %v", read)
	}
	requireTurn(t, s, "c/n/m")
}

// requireTurn waits for the turn of a machine, which ends a moment after the answer to its call.
func requireTurn(t *testing.T, s *service, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	release, err := s.turns.take(ctx, name, "a test")
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestMachinesOfOneNameInTwoNamespacesDoNotWaitForEachOther(t *testing.T) {
	provider := newSlow()
	s := serviceOf(t, provider)
	provider.cutShort(t, s, creation("1"))
	other := creation("2")
	other.Machine.Namespace = "o"
	ended := make(chan struct{})
	go func() {
		_, _ = s.CreateMachine(context.Background(), other)
		close(ended)
	}()
	select {
	case <-provider.asked: // while the first one still runs
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
	refused := answer{err: status.Error(codes.ResourceExhausted, "quota")}
	provider.answers <- refused
	provider.answers <- refused
	<-ended
	requireTurn(t, s, "c/n/m")
}

func TestNeitherAFailureNorTheStateOfTheProviderRepeatsTheSecret(t *testing.T) {
	provider := absent()
	provider.create = &driver.CreateMachineResponse{LastKnownState: "with of-the-account"}
	provider.deletion = &driver.DeleteMachineResponse{LastKnownState: "with of-the-account"}
	provider.errors["CreateMachine"] = status.Error(codes.Internal, "refused of-the-account ")
	s := serviceOf(t, provider)
	in := creation("1")
	in.SecretData = map[string][]byte{"password": []byte("of-the-account")}
	made, _ := s.CreateMachine(context.Background(), in)
	if made.Failure.GetMessage() != "refused [redacted]" || made.LastKnownState != "with [redacted]" || made.Failure.LastKnownState != made.LastKnownState {
		t.Errorf("%v", made)
	}
	gone := deletion("1")
	gone.SecretData = in.SecretData
	if deleted, _ := s.DeleteMachine(context.Background(), gone); deleted.LastKnownState != "with [redacted]" {
		t.Errorf("%v", deleted)
	}
	requireTurn(t, s, "c/n/m")
	if len(s.secrets.pieces) > 0 {
		t.Errorf("pieces of it are kept: %v", s.secrets.pieces)
	}
}

func TestVolumesAreNamedByTheProvider(t *testing.T) {
	provider := &scripted{volumes: &driver.GetVolumeIDsResponse{VolumeIDs: []string{"vol-1"}}, errors: map[string]error{}}
	s := serviceOf(t, provider)
	in := &contract.GetVolumeIDsRequest{VolumeSpecs: [][]byte{[]byte(`{"csi": {"driver": "d", "volumeHandle": "vol-1"}}`)}}
	if named, _ := s.GetVolumeIDs(context.Background(), in); !slices.Equal(named.VolumeIds, []string{"vol-1"}) {
		t.Errorf("%v", named)
	}
	in.VolumeSpecs = [][]byte{[]byte("?")}
	if named, _ := s.GetVolumeIDs(context.Background(), in); named.Failure.GetCode() != contract.Code_CODE_INVALID_ARGUMENT {
		t.Errorf("of what is no volume: %v", named)
	}
	provider.volumes, provider.errors["GetVolumeIDs"] = nil, status.Error(codes.Unimplemented, "no")
	in.VolumeSpecs = nil
	named, _ := s.GetVolumeIDs(context.Background(), in)
	if named.Failure.GetCode() != contract.Code_CODE_UNIMPLEMENTED || !s.missing["GetVolumeIDs"] {
		t.Errorf("of a provider without them: %v", named)
	}
}

func TestAProviderOlderThanInitializeMachineHasNoSuchMethod(t *testing.T) {
	s := serviceOf(t, Complete(&scripted{}))
	in := &contract.InitializeMachineRequest{Call: anywhere, Machine: machine("n", "m", "1", "id-m")}
	if completed, _ := s.InitializeMachine(context.Background(), in); completed.Failure.GetCode() != contract.Code_CODE_UNIMPLEMENTED {
		t.Errorf("%v", completed)
	}
	if !s.missing["InitializeMachine"] {
		t.Error("it is still among the capabilities")
	}
}

func TestTheScopeOfListsIsTheClusterUnlessTheProviderSaysOtherwise(t *testing.T) {
	if got := (Options{}).ListScope.contract(); got != contract.ListScope_LIST_SCOPE_CLUSTER {
		t.Error(got)
	}
	if got := ListScopeClass.contract(); got != contract.ListScope_LIST_SCOPE_CLASS {
		t.Error(got)
	}
}

func TestAProviderLearnsOfWhichClusterACallIs(t *testing.T) {
	provider := &asking{byName: byName{}}
	s := serviceOf(t, provider)
	_, _ = s.CreateMachine(context.Background(), creation("1"))
	_, _ = s.ListMachines(context.Background(), &contract.ListMachinesRequest{Call: anywhere})
	if !slices.Equal(provider.clusters, []string{"c", "c"}) {
		t.Errorf("%v", provider.clusters)
	}
}

// asking asks for the cluster.
type asking struct {
	byName
	clusters []string
}

func (p *asking) CreateMachine(ctx context.Context, in *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.clusters = append(p.clusters, Cluster(ctx))
	return p.byName.CreateMachine(ctx, in)
}

func (p *asking) ListMachines(ctx context.Context, in *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	p.clusters = append(p.clusters, Cluster(ctx))
	return p.byName.ListMachines(ctx, in)
}
