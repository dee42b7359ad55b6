package mcmprovider

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"machinist.example/mcm-provider/contract"
)

// machineOf is the Machine as the original hands it to a provider. The fields of the contract win over the object: the manager leaves a
// provider ID out that two Machines have. An object with a field of another type than the original's is as complete as it can be, and
// comes with an error: a VM is not made from it, but found and deleted.
func machineOf(given *contract.Machine) (*v1alpha1.Machine, error) {
	machine := &v1alpha1.Machine{}
	err := decode("machine", given.GetJson(), machine)
	machine.Namespace, machine.Name, machine.UID = given.GetNamespace(), given.GetName(), types.UID(given.GetUid())
	machine.Spec.ProviderID = given.GetProviderId()
	return machine, err
}

// classOf is the same of the MachineClass.
func classOf(given *contract.MachineClass) (*v1alpha1.MachineClass, error) {
	class := &v1alpha1.MachineClass{}
	err := decode("machineClass", given.GetJson(), class)
	class.Namespace, class.Name, class.Provider = given.GetNamespace(), given.GetName(), given.GetProvider()
	class.ProviderSpec.Raw, class.ProviderSpec.Object = given.GetProviderSpec(), nil
	return class, err
}

// secretOf has the contents of the class's Secrets, which the manager has merged as the original does it.
func secretOf(data map[string][]byte) *corev1.Secret { return &corev1.Secret{Data: data} }

func volumesOf(specs [][]byte) ([]*corev1.PersistentVolumeSpec, error) {
	volumes := []*corev1.PersistentVolumeSpec{}
	for _, text := range specs {
		volume := &corev1.PersistentVolumeSpec{}
		if err := decode("volume", text, volume); err != nil {
			return nil, err
		}
		volumes = append(volumes, volume)
	}
	return volumes, nil
}

func decode(what string, text []byte, into any) error {
	if len(text) == 0 {
		return nil // the fields beside it say enough
	}
	if err := json.Unmarshal(text, into); err != nil {
		return failed(contract.Code_CODE_INVALID_ARGUMENT, "%s: %s", what, err)
	}
	return nil
}

// nodeLabel of a Machine has the name of its Node.
const nodeLabel = "node"

// vm is what the responses of the provider say about a VM.
type vm struct {
	providerID, nodeName string
	addresses            []corev1.NodeAddress
}

// or completes a VM with what the Machine says of it: some providers return nothing beside Uninitialized.
func (v vm) or(machine *v1alpha1.Machine) vm {
	if v.providerID == "" {
		v.providerID = machine.Spec.ProviderID
	}
	if v.nodeName == "" && v.providerID == machine.Spec.ProviderID {
		v.nodeName = machine.Labels[nodeLabel]
	}
	return v
}

func (v vm) contract() *contract.VirtualMachine {
	if v.providerID == "" {
		return nil
	}
	shown := &contract.VirtualMachine{ProviderId: v.providerID, NodeName: v.nodeName}
	for _, address := range v.addresses {
		shown.Addresses = append(shown.Addresses, &contract.Address{Type: string(address.Type), Address: address.Address})
	}
	return shown
}
