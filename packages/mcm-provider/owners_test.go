package mcmprovider

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"machinist.example/mcm-provider/contract"
)

// byName finds VMs by the names of machines alone, as the public providers do it.
type byName struct {
	driver.Driver
	names   []string
	deleted []string
	// Answers GetMachineStatus with Unimplemented.
	isBlind bool
	// Answers DeleteMachine with NotFound.
	isGone bool
}

func (p *byName) CreateMachine(_ context.Context, in *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.names = append(p.names, in.Machine.Name)
	return &driver.CreateMachineResponse{ProviderID: "id-" + in.Machine.Name, NodeName: in.Machine.Name}, nil
}

func (p *byName) GetMachineStatus(_ context.Context, in *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	switch {
	case p.isBlind:
		return nil, status.Error(codes.Unimplemented, "not implemented")
	case !slices.Contains(p.names, in.Machine.Name):
		return nil, status.Error(codes.NotFound, "none")
	default:
		return &driver.GetMachineStatusResponse{ProviderID: "id-" + in.Machine.Name, NodeName: in.Machine.Name}, nil
	}
}

func (p *byName) DeleteMachine(_ context.Context, in *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if p.isGone {
		return nil, status.Error(codes.NotFound, "none")
	}
	p.deleted = append(p.deleted, in.Machine.Name)
	p.names = slices.DeleteFunc(p.names, func(name string) bool { return name == in.Machine.Name })
	return &driver.DeleteMachineResponse{}, nil
}

func (p *byName) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	list := map[string]string{}
	for _, name := range p.names {
		list["id-"+name] = name
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

func serviceOf(t *testing.T, provider driver.Driver) *service {
	t.Helper()
	fencing, err := OpenFencing(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &service{provider: provider, fencing: fencing, secrets: &secrets{}}
}

func machine(namespace, name, uid, id string) *contract.Machine {
	return &contract.Machine{Namespace: namespace, Name: name, Uid: uid, ProviderId: id}
}

func TestTheVMOfAnotherMachineIsNeitherShownNorDeletedNorDoubled(t *testing.T) {
	provider := &byName{}
	s := serviceOf(t, provider)
	ctx := context.Background()
	in := &contract.Call{Cluster: "c"}
	if made, _ := s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "1", "")}); made.Failure != nil {
		t.Fatal(made.Failure)
	}
	for name, other := range map[string]*contract.Machine{
		"with another UID":              machine("n", "m", "2", ""),
		"with another UID and that ID":  machine("n", "m", "2", "id-m"),
		"of another namespace":          machine("o", "m", "3", ""),
		"of another name, with that ID": machine("n", "x", "4", "id-m"),
	} {
		if shown, _ := s.GetMachineStatus(ctx, &contract.GetMachineStatusRequest{Call: in, Machine: other}); shown.Failure.GetCode() != contract.Code_CODE_NOT_FOUND {
			t.Errorf("the machine %s gets %v", name, shown)
		}
		if deleted, _ := s.DeleteMachine(ctx, &contract.DeleteMachineRequest{Call: in, Machine: other}); deleted.Failure.GetCode() != contract.Code_CODE_NOT_FOUND {
			t.Errorf("the deletion of the machine %s: %v", name, deleted)
		}
	}
	made, _ := s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "2", "")})
	if made.Failure.GetCode() != contract.Code_CODE_ABORTED || !strings.Contains(made.Failure.GetMessage(), "same name") {
		t.Errorf("a creation beside it: %v", made)
	}
	if len(provider.names) != 1 || len(provider.deleted) != 0 {
		t.Errorf("VMs %v, deleted %v", provider.names, provider.deleted)
	}
	own := machine("n", "m", "1", "id-m")
	if deleted, _ := s.DeleteMachine(ctx, &contract.DeleteMachineRequest{Call: in, Machine: own}); deleted.Failure != nil || len(provider.names) != 0 {
		t.Errorf("its own deletion: %v, VMs %v", deleted, provider.names)
	}
	if made, _ := s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "2", "")}); made.Failure != nil {
		t.Errorf("a creation after it: %v", made)
	}
}

func TestAVMThatWasMadeHereAndFoundAgainIsStillThatOfItsMachine(t *testing.T) {
	s := serviceOf(t, &byName{})
	ctx := context.Background()
	_, _ = s.CreateMachine(ctx, creation("1"))
	status := func(uid string) contract.Code {
		found, _ := s.GetMachineStatus(ctx, &contract.GetMachineStatusRequest{Call: anywhere, Machine: machine("n", "m", uid, "id-m")})
		return found.Failure.GetCode()
	}
	if own, other := status("1"), status("2"); own != contract.Code_CODE_OK || other != contract.Code_CODE_NOT_FOUND {
		t.Errorf("%s, %s", own, other)
	}
}

func TestTheVMOfAnotherMachineIsNotInitialized(t *testing.T) {
	s := serviceOf(t, &byName{})
	in := &contract.Call{Cluster: "c"}
	_, _ = s.CreateMachine(context.Background(), &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "1", "")})
	other := &contract.InitializeMachineRequest{Call: in, Machine: machine("o", "m", "2", "id-m")}
	if got, _ := s.InitializeMachine(context.Background(), other); got.Failure.GetCode() != contract.Code_CODE_NOT_FOUND {
		t.Errorf("%v", got)
	}
}

func TestAVMThatIsGoneIsThatOfNoMachine(t *testing.T) {
	provider := &byName{isGone: true}
	s := serviceOf(t, provider)
	in := &contract.Call{Cluster: "c"}
	_, _ = s.CreateMachine(context.Background(), &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "1", "")})
	gone, _ := s.DeleteMachine(context.Background(), &contract.DeleteMachineRequest{Call: in, Machine: machine("n", "m", "1", "id-m")})
	if gone.Failure.GetCode() != contract.Code_CODE_NOT_FOUND || len(s.owners.vms) > 0 {
		t.Errorf("%v, remembered %v", gone, s.owners.vms)
	}
}

func TestAVMWithoutAMachineIsDeletedByItsID(t *testing.T) {
	provider := &byName{}
	s := serviceOf(t, provider)
	in := &contract.Call{Cluster: "c"}
	_, _ = s.CreateMachine(context.Background(), &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "1", "")})
	deleted, _ := s.DeleteMachine(context.Background(), &contract.DeleteMachineRequest{Call: in, Machine: machine("n", "m", "", "id-m")})
	if deleted.Failure != nil || len(provider.names) != 0 {
		t.Errorf("%v, VMs %v", deleted, provider.names)
	}
}

func TestAListHasNoVMOfAnotherNamespaceOrCluster(t *testing.T) {
	s := serviceOf(t, &byName{names: []string{"made-before-a-restart"}})
	ctx := context.Background()
	_, _ = s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: &contract.Call{Cluster: "c"}, Machine: machine("n", "m", "1", "")})
	list := func(cluster, namespace string) []string {
		class := &contract.MachineClass{Namespace: namespace, Name: "class"}
		response, _ := s.ListMachines(ctx, &contract.ListMachinesRequest{Call: &contract.Call{Cluster: cluster}, MachineClass: class})
		shown := []string{}
		for _, vm := range response.Machines {
			shown = append(shown, vm.MachineName+"/"+vm.MachineUid+"/"+vm.MachineNamespace)
		}
		return shown
	}
	if got := list("c", "n"); !slices.Equal(got, []string{"m/1/n", "made-before-a-restart//n"}) {
		t.Errorf("its own: %v", got)
	}
	for _, other := range [][]string{list("c", "o"), list("d", "n")} {
		if slices.ContainsFunc(other, func(vm string) bool { return strings.HasPrefix(vm, "m/") }) {
			t.Errorf("another one: %v", other)
		}
	}
}

func TestAProviderWithoutGetMachineStatusIsAskedForItsListBeforeAVMIsMade(t *testing.T) {
	provider := &byName{isBlind: true}
	s := serviceOf(t, provider)
	ctx := context.Background()
	in := &contract.CreateMachineRequest{Call: &contract.Call{Cluster: "c"}, Machine: machine("n", "m", "1", "")}
	first, _ := s.CreateMachine(ctx, in)
	second, _ := s.CreateMachine(ctx, in)
	if first.Failure != nil || second.Vm.GetProviderId() != first.Vm.GetProviderId() || len(provider.names) != 1 {
		t.Errorf("%v, %v, VMs %v", first, second, provider.names)
	}
	provider.names = append(provider.names, "m")
	third, _ := s.CreateMachine(ctx, in)
	if third.Failure != nil {
		t.Errorf("names of one ID are one VM: %v", third.Failure)
	}
}

func TestAVMThatIsOnlyListedIsCompletedByAProviderThatDoesSo(t *testing.T) {
	for _, completes := range []bool{false, true} {
		provider := &byName{isBlind: true, names: []string{"m"}}
		s := serviceOf(t, provider)
		s.options.CompletesCreations = completes
		in := &contract.CreateMachineRequest{Call: &contract.Call{Cluster: "c"}, Machine: machine("n", "m", "1", "")}
		got, _ := s.CreateMachine(context.Background(), in)
		if asked := len(provider.names) == 2; got.Vm.GetProviderId() != "id-m" || asked != completes {
			t.Errorf("%v: %v, asked %v", completes, got, asked)
		}
		if known := s.owners.vms["id-m"]; known.uid != "" {
			t.Errorf("a VM that was found is taken for one that was made for %q", known.uid)
		}
	}
}

func TestAVMThatIsListedForAnotherMachineIsNotTaken(t *testing.T) {
	provider := &byName{isBlind: true}
	s := serviceOf(t, provider)
	s.options.CompletesCreations = true
	ctx, in := context.Background(), &contract.Call{Cluster: "c"}
	_, _ = s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "1", "")})
	got, _ := s.CreateMachine(ctx, &contract.CreateMachineRequest{Call: in, Machine: machine("n", "m", "2", "")})
	if got.Failure.GetCode() != contract.Code_CODE_ABORTED || len(provider.names) != 1 {
		t.Errorf("%v, VMs %v", got, provider.names)
	}
}

func TestAListThatIsGivenUpShowsNoSecretWhileItGoesOn(t *testing.T) {
	provider := &stuck{calls: make(chan struct{}, 2), end: make(chan struct{})}
	s := serviceOf(t, provider)
	ctx, giveUp := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		secret := map[string][]byte{"password": []byte("of-the-account")}
		_, _ = s.ListMachines(ctx, &contract.ListMachinesRequest{MachineClass: &contract.MachineClass{Name: "class"}, SecretData: secret})
		close(ended)
	}()
	<-provider.calls
	giveUp()
	<-ended
	if got := s.secrets.clean("of-the-account"); got != hidden {
		t.Errorf("%s is shown", got)
	}
	close(provider.end)
	release, _ := s.lists.take(context.Background(), "//class", "ListMachines")
	release()
	if got := s.secrets.clean("of-the-account"); got == hidden {
		t.Error("it is kept longer than needed")
	}
}

// byID finds VMs by their IDs alone, and deletes by the names of machines those that it is not told.
type byID struct{ byName }

func (p *byID) GetMachineStatus(ctx context.Context, in *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if in.Machine.Spec.ProviderID == "" {
		return nil, status.Error(codes.NotFound, "machine does not have a ProviderID yet")
	}
	return p.byName.GetMachineStatus(ctx, in)
}

func TestVMsThatAProviderFindsByIDAloneAreLookedForInItsList(t *testing.T) {
	provider := &byID{}
	s := serviceOf(t, provider)
	s.options.FindsByID = true
	ctx := context.Background()
	for range 2 {
		if made, _ := s.CreateMachine(ctx, creation("1")); made.GetVm().GetProviderId() != "id-m" || len(provider.names) != 1 {
			t.Errorf("%v, VMs %v", made, provider.names)
		}
	}
	found, _ := s.GetMachineStatus(ctx, &contract.GetMachineStatusRequest{Call: anywhere, Machine: machine("n", "m", "1", "")})
	if found.GetVm().GetProviderId() != "id-m" {
		t.Errorf("its status: %v", found)
	}
	foreign := deletion("2")
	foreign.Machine.Namespace = "o"
	if deleted, _ := s.DeleteMachine(ctx, foreign); deleted.Failure.GetCode() != contract.Code_CODE_NOT_FOUND || len(provider.names) != 1 {
		t.Errorf("the deletion of another machine of its name: %v, VMs %v", deleted, provider.names)
	}
	if deleted, _ := s.DeleteMachine(ctx, deletion("1")); deleted.Failure != nil || len(provider.names) > 0 || len(s.owners.vms) > 0 {
		t.Errorf("its deletion: %v, VMs %v", deleted, provider.names)
	}
	if deleted, _ := s.DeleteMachine(ctx, deletion("1")); deleted.Failure != nil {
		t.Errorf("its deletion once more: %v", deleted)
	}
}

func TestAVMIsNotDeletedByItsNameWhileTheListCannotBeRead(t *testing.T) {
	provider := &scripted{errors: map[string]error{"ListMachines": status.Error(codes.Unavailable, "away")}}
	s := serviceOf(t, provider)
	s.options.FindsByID = true
	deleted, _ := s.DeleteMachine(context.Background(), deletion("1"))
	if deleted.Failure.GetCode() != contract.Code_CODE_UNAVAILABLE || slices.Contains(provider.asked, "DeleteMachine") {
		t.Errorf("%v, asked for %v", deleted, provider.asked)
	}
}

func TestAProviderWithoutGetMachineStatusDeletesByTheNameOfTheMachine(t *testing.T) {
	provider := &byName{isBlind: true, names: []string{"m"}}
	s := serviceOf(t, provider)
	if deleted, _ := s.DeleteMachine(context.Background(), deletion("1")); deleted.Failure != nil || len(provider.names) > 0 {
		t.Errorf("%v, VMs %v", deleted, provider.names)
	}
}

// stuck lists until it is told to end, whatever its context says.
type stuck struct {
	driver.Driver
	calls chan struct{}
	end   chan struct{}
}

func (p *stuck) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	p.calls <- struct{}{}
	<-p.end
	return &driver.ListMachinesResponse{}, nil
}

func TestAListThatDoesNotEndIsNotStartedAgain(t *testing.T) {
	provider := &stuck{calls: make(chan struct{}, 2), end: make(chan struct{})}
	s := serviceOf(t, provider)
	list := func(ctx context.Context) *contract.ListMachinesResponse {
		response, _ := s.ListMachines(ctx, &contract.ListMachinesRequest{MachineClass: &contract.MachineClass{Name: "class"}})
		return response
	}
	first, giveUp := context.WithCancel(context.Background())
	given := make(chan *contract.ListMachinesResponse)
	go func() { given <- list(first) }()
	<-provider.calls
	giveUp()
	if got := <-given; got.Failure.GetCode() != contract.Code_CODE_ABORTED {
		t.Errorf("the list that was given up: %v", got)
	}
	if got := list(first); got.Failure.GetCode() != contract.Code_CODE_ABORTED || len(provider.calls) > 0 {
		t.Errorf("the next one: %v, started %d times", got, len(provider.calls))
	}
	close(provider.end)
	if got := list(context.Background()); got.Failure != nil {
		t.Errorf("after its end: %v", got)
	}
}
