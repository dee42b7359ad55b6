package mcmprovider

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	grpccodes "google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"machinist.example/mcm-provider/contract"
)

// slow makes its VMs when it is told to, and its cloud does not show them at first.
type slow struct {
	byName
	asked   chan struct{}
	answers chan answer
	shows   bool
	// What it says of each VM, if it fails.
	failure error
	// The provider ID with which a VM was deleted.
	deletedID string
}

type answer struct {
	response *driver.CreateMachineResponse
	err      error
}

func (p *slow) CreateMachine(ctx context.Context, in *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.asked <- struct{}{}
	given := <-p.answers
	if given.response == nil && given.err == nil {
		return p.byName.CreateMachine(ctx, in)
	}
	return given.response, given.err
}

func (p *slow) GetMachineStatus(ctx context.Context, in *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if p.failure != nil {
		return nil, p.failure
	}
	if !p.shows {
		return nil, status.Error(codes.NotFound, "not visible")
	}
	return p.byName.GetMachineStatus(ctx, in)
}

func (p *slow) DeleteMachine(ctx context.Context, in *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if !p.shows {
		return nil, status.Error(codes.NotFound, "not visible")
	}
	p.deletedID = in.Machine.Spec.ProviderID
	return p.byName.DeleteMachine(ctx, in)
}

func newSlow() *slow { return &slow{asked: make(chan struct{}, 9), answers: make(chan answer, 9)} }

// cutShort asks for a VM, and gives the call up while the provider works.
func (p *slow) cutShort(t *testing.T, s *service, in *contract.CreateMachineRequest) {
	t.Helper()
	ctx, giveUp := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := s.CreateMachine(ctx, in)
		ended <- err
	}()
	<-p.asked
	giveUp()
	if err := <-ended; grpcstatus.Code(err) != grpccodes.Aborted {
		t.Errorf("a creation that was given up is answered with %v", err)
	}
}

func creation(uid string) *contract.CreateMachineRequest {
	return &contract.CreateMachineRequest{Call: &contract.Call{Cluster: "c"}, Machine: machine("n", "m", uid, "")}
}

func deletion(uid string) *contract.DeleteMachineRequest {
	return &contract.DeleteMachineRequest{Call: &contract.Call{Cluster: "c"}, Machine: machine("n", "m", uid, "")}
}

func TestAVMOfACreationThatWasGivenUpIsThatOfTheNextOneAndIsDeletedOnceItShows(t *testing.T) {
	for name, given := range map[string]answer{
		"made":          {},
		"uninitialized": {&driver.CreateMachineResponse{ProviderID: "id-m"}, status.Error(codes.Uninitialized, "wait")},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newSlow()
			s := serviceOf(t, provider)
			provider.cutShort(t, s, creation("1"))
			provider.answers <- given
			next, err := s.CreateMachine(context.Background(), creation("1"))
			if err != nil || next.GetVm().GetProviderId() != "id-m" || len(provider.asked) > 0 {
				t.Errorf("%v, %v, asked again %d times", next, err, len(provider.asked))
			}
			deleted, _ := s.DeleteMachine(context.Background(), deletion("1"))
			if deleted.Failure.GetCode() != contract.Code_CODE_ABORTED || !strings.Contains(deleted.Failure.GetMessage(), "waiting for the cloud") {
				t.Errorf("its deletion before it shows: %v", deleted)
			}
			provider.shows, provider.names = true, []string{"m"}
			if deleted, _ := s.DeleteMachine(context.Background(), deletion("1")); deleted.Failure != nil || provider.deletedID != "id-m" {
				t.Errorf("its deletion: %v, of %q", deleted, provider.deletedID)
			}
			if _, isThere := s.unheard.find("1"); isThere {
				t.Error("it is remembered after its deletion")
			}
		})
	}
}

// cheerful says of what it does not see that it is deleted.
type cheerful struct{ *slow }

func (p cheerful) DeleteMachine(ctx context.Context, in *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if response, err := p.slow.DeleteMachine(ctx, in); failureOf(err) == nil {
		return response, nil
	}
	return &driver.DeleteMachineResponse{}, nil
}

func TestADeletionOfAVMThatTheCloudDoesNotShowYetIsNotASuccess(t *testing.T) {
	provider := cheerful{newSlow()}
	s := serviceOf(t, provider)
	provider.cutShort(t, s, creation("1"))
	provider.answers <- answer{}
	deleted, _ := s.DeleteMachine(context.Background(), deletion("1"))
	if deleted.Failure.GetCode() != contract.Code_CODE_ABORTED || !strings.Contains(deleted.Failure.GetMessage(), "waiting for the cloud") {
		t.Errorf("before it shows: %v", deleted)
	}
	provider.shows = true
	if deleted, _ := s.DeleteMachine(context.Background(), deletion("1")); deleted.Failure != nil || provider.deletedID != "id-m" {
		t.Errorf("once it shows: %v, of %q", deleted, provider.deletedID)
	}
}

func TestADeletionOfAVMOfWhichTheCloudDoesNotSayWhetherItShowsItIsNotASuccess(t *testing.T) {
	for code, isRetried := range map[codes.Code]bool{
		codes.Internal: true, codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Unimplemented: false, codes.Uninitialized: false,
	} {
		provider := cheerful{newSlow()}
		s := serviceOf(t, provider)
		provider.cutShort(t, s, creation("1"))
		provider.answers <- answer{}
		provider.failure = status.Error(code, "throttled")
		deleted, _ := s.DeleteMachine(context.Background(), deletion("1"))
		if _, isRemembered := s.unheard.find("1"); isRemembered != isRetried || (deleted.Failure != nil) != isRetried {
			t.Errorf("%v: %v, remembered: %v", code, deleted, isRemembered)
		}
	}
}

func TestAVMThatTheCloudHasNotShownForLongIsNotThere(t *testing.T) {
	remembered := &unheard{}
	remembered.remember("1", vm{providerID: "id-m"})
	remembered.vms["1"] = unheardVM{made: vm{providerID: "id-m"}, at: time.Now().Add(-settlingTime - time.Second)}
	if _, isThere := remembered.find("1"); isThere {
		t.Error("it is found")
	}
	remembered.remember("2", vm{})
	if len(remembered.vms) != 1 {
		t.Errorf("it is kept: %v", remembered.vms)
	}
}

func TestAVMOfACreationThatWasGivenUpIsNotThatOfALaterMachineOfItsName(t *testing.T) {
	provider := newSlow()
	s := serviceOf(t, provider)
	provider.cutShort(t, s, creation("1"))
	provider.answers <- answer{}
	provider.shows = true
	later, _ := s.CreateMachine(context.Background(), creation("2"))
	if later.GetFailure().GetCode() != contract.Code_CODE_ABORTED || len(provider.asked) > 0 {
		t.Errorf("%v, asked %d times", later, len(provider.asked))
	}
}

func TestNoSecondVMIsMadeWhileItIsNotKnownWhetherACreationMadeOne(t *testing.T) {
	provider := newSlow()
	s := serviceOf(t, provider)
	provider.cutShort(t, s, creation("1"))
	provider.answers <- answer{err: context.Canceled}

	waiting, err := s.CreateMachine(context.Background(), creation("1"))
	if grpcstatus.Code(err) != grpccodes.Aborted || !strings.Contains(err.Error(), "waiting for the VM") || len(provider.asked) > 0 {
		t.Errorf("%v, %v, asked %d times", waiting, err, len(provider.asked))
	}
	other := creation("2")
	other.Machine.Name = "other"
	provider.answers <- answer{}
	if made, _ := s.CreateMachine(context.Background(), other); made.GetFailure() != nil {
		t.Errorf("another machine: %v", made)
	}
	<-provider.asked
	s.unheard.vms["1"] = unheardVM{at: time.Now().Add(-doubtTime - time.Second)}
	provider.answers <- answer{}
	if made, _ := s.CreateMachine(context.Background(), creation("1")); made.GetFailure() != nil || len(provider.asked) != 1 {
		t.Errorf("after its time: %v", made)
	}
}

func TestAListedVMIsCompletedAlsoWhileItsCreationIsInDoubt(t *testing.T) {
	provider := newSlow()
	provider.shows, provider.isBlind = true, true
	s := serviceOf(t, provider)
	s.options.CompletesCreations = true
	provider.cutShort(t, s, creation("1"))
	provider.names = []string{"m"}
	provider.answers <- answer{err: context.Canceled}
	provider.answers <- answer{response: &driver.CreateMachineResponse{ProviderID: "id-m", NodeName: "m"}}
	if made, err := s.CreateMachine(context.Background(), creation("1")); made.GetVm().GetProviderId() != "id-m" || len(provider.asked) != 1 {
		t.Errorf("%v, %v, asked %d times", made, err, len(provider.asked))
	}
}

func TestAnErrorOfACreationWhoseTimeHasPassedIsNoAnswer(t *testing.T) {
	for range 20 { // whether the caller or the provider is first is a matter of chance
		provider := &punctual{}
		s := serviceOf(t, provider)
		ctx, end := context.WithCancel(context.Background())
		provider.end = end
		if response, err := s.CreateMachine(ctx, creation("1")); grpcstatus.Code(err) != grpccodes.Aborted {
			t.Fatalf("%v, %v", response, err)
		}
		next, err := s.CreateMachine(context.Background(), creation("1"))
		if grpcstatus.Code(err) != grpccodes.Aborted || provider.asked != 1 {
			t.Fatalf("the next one: %v, %v, asked %d times", next, err, provider.asked)
		}
	}
}

// punctual ends with its context.
type punctual struct {
	byName
	end   func()
	asked int
}

func (p *punctual) CreateMachine(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.asked++
	p.end()
	return nil, status.Error(codes.Internal, "context canceled")
}

func TestACreationThatMayBeRepeatedIsNotInDoubt(t *testing.T) {
	provider := newSlow()
	s := serviceOf(t, provider)
	s.options.IdempotentCreate = true
	provider.cutShort(t, s, creation("1"))
	provider.answers <- answer{err: context.Canceled}
	provider.answers <- answer{}
	if made, _ := s.CreateMachine(context.Background(), creation("1")); made.GetFailure() != nil {
		t.Errorf("%v", made)
	}
}

func TestAProviderThatLooksForTooLongIsNotAskedForAVM(t *testing.T) {
	provider := &hesitant{looks: make(chan struct{}), looked: make(chan struct{})}
	s := serviceOf(t, provider)
	ctx, giveUp := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		_, _ = s.CreateMachine(ctx, creation("1"))
		close(ended)
	}()
	<-provider.looks
	giveUp()
	<-ended
	close(provider.looked)
	release, _ := s.turns.take(context.Background(), "c/n/m", "GetMachineStatus")
	release()
	if len(provider.names) > 0 {
		t.Error("a VM is made that nobody waits for")
	}
}

// hesitant looks for VMs whatever its context says.
type hesitant struct {
	byName
	looks, looked chan struct{}
}

func (p *hesitant) GetMachineStatus(ctx context.Context, in *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	close(p.looks)
	<-p.looked
	return p.byName.GetMachineStatus(ctx, in)
}
