"""The methods of the contract."""

import json
import re

from calls import Failure, answers
from cloud import VM, NameTaken
from machine.driver.v1 import driver_pb2 as contract
from machine.driver.v1 import driver_pb2_grpc

# What Kubernetes allows as a name.
MACHINE_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


class Driver(driver_pb2_grpc.DriverServiceServicer):
    """Remembers nothing that the provider does not remember, but for fencing tokens. Methods that are not here (InitializeMachine) are
    answered with UNIMPLEMENTED, and GetCapabilities does not name them."""

    def __init__(self, cloud, fencing, log):
        self.cloud = cloud
        self.fencing = fencing
        self.log = log

    def GetCapabilities(self, request, context):
        """Asked on each new connection: cheap, and without the provider."""
        if "v1" not in request.contract_versions:
            failure = Failure(contract.CODE_FAILED_PRECONDITION, "this driver speaks contract version v1")
            return contract.GetCapabilitiesResponse(failure=failure.message)
        return contract.GetCapabilitiesResponse(
            contract_version="v1",
            name="folder-driver",
            optional_methods=["ListMachines", "GetVolumeIDs"],
            idempotent_create=True,
            list_scope=contract.LIST_SCOPE_CLASS,
        )

    @answers(contract.CreateMachineResponse)
    def CreateMachine(self, request, deadline):
        call, machine = request.call, request.machine
        self.fencing.admit(call, machine.namespace)
        if not MACHINE_NAME.fullmatch(machine.name):
            raise invalid("machine.metadata.name: must be a DNS subdomain")
        size = size_in(request.machine_class.provider_spec)
        # Look before you make: the call may be a repeated one.
        vm = only_one(self._vms_of(request, deadline), machine)
        if vm is None:
            vm = VM(
                providerID=f"folder-driver:///{call.cluster}/{machine.namespace}/{machine.name}/{machine.uid}",
                cluster=call.cluster,
                namespace=machine.namespace,
                className=request.machine_class.name,
                machineName=machine.name,
                machineUID=machine.uid,
                size=size,
            )
            try:
                # A real VM is started with request.secret_data["userData"].
                self.cloud.create(deadline, token_in(request), vm)
            except NameTaken:
                # Another call makes it at this moment. This one is asked again, and then finds it.
                raise Failure(contract.CODE_ABORTED, "another call makes the VM of this machine") from None
            about = {"machine": f"{machine.namespace}/{machine.name}", "providerID": vm.providerID}
            self.log.info("made a VM", extra={"fields": about})
        return contract.CreateMachineResponse(vm=shown(vm))

    @answers(contract.GetMachineStatusResponse)
    def GetMachineStatus(self, request, deadline):
        machine = request.machine
        vm = only_one(self._vms_of(request, deadline), machine)
        if vm is None:
            # Only a certain "there is none" is NotFound: the manager acts on it.
            raise Failure(contract.CODE_NOT_FOUND, f"machine {machine.namespace}/{machine.name} has no VM")
        return contract.GetMachineStatusResponse(vm=shown(vm))

    @answers(contract.DeleteMachineResponse)
    def DeleteMachine(self, request, deadline):
        self.fencing.admit(request.call, request.machine.namespace)
        for vm in self._vms_of(request, deadline):
            self.cloud.delete(deadline, token_in(request), vm)
            self.log.info("deleted a VM", extra={"fields": {"providerID": vm.providerID}})
        return contract.DeleteMachineResponse()

    @answers(contract.ListMachinesResponse)
    def ListMachines(self, request, deadline):
        """One page of a class. The token of the next page is the last ID of this one: a VM that is there throughout is on one of them,
        whatever comes and goes meanwhile."""
        wanted = request.machine_class
        vms = [
            vm
            for vm in self.cloud.list(deadline, token_in(request))
            # What is listed and has no machine is deleted: never one of another cluster or namespace. With LIST_SCOPE_CLUSTER the
            # class would not be compared.
            if (vm.cluster, vm.namespace, vm.className) == (request.call.cluster, wanted.namespace, wanted.name)
            and vm.providerID > request.page_token
        ]
        vms.sort(key=lambda vm: vm.providerID)
        page = vms[: request.page_size] if request.page_size > 0 else vms
        listed = [
            contract.ListedMachine(
                provider_id=vm.providerID,
                machine_name=vm.machineName,
                machine_uid=vm.machineUID,
                machine_namespace=vm.namespace,
            )
            for vm in page
        ]
        token = page[-1].providerID if len(page) < len(vms) else ""
        return contract.ListMachinesResponse(machines=listed, next_page_token=token)

    @answers(contract.GetVolumeIDsResponse)
    def GetVolumeIDs(self, request, deadline):
        """Those volumes that are the provider's, in the order asked for."""
        sources = [json.loads(spec).get("csi", {}) for spec in request.volume_specs]
        ids = [source["volumeHandle"] for source in sources if source.get("driver") == "folder-driver"]
        return contract.GetVolumeIDsResponse(volume_ids=ids)

    def _vms_of(self, request, deadline):
        vms = self.cloud.list(deadline, token_in(request))
        return [vm for vm in vms if is_vm_of(vm, request.call.cluster, request.machine)]


def is_vm_of(vm, cluster, machine):
    """Whether a VM is that of a machine (rule 1): a missing tag is no contradiction, another UID, namespace or cluster is."""
    if not agrees(vm.cluster, cluster) or not agrees(vm.namespace, machine.namespace):
        return False
    if machine.uid and not agrees(vm.machineUID, machine.uid):
        return False
    if machine.provider_id and vm.providerID == machine.provider_id:
        # An ID alone proves nothing: a VM without UID that has another name is another machine's. A stub means exactly this VM.
        return not machine.uid or bool(vm.machineUID) or agrees(vm.machineName, machine.name)
    # A VM without a machine is meant by its ID alone: its name may be another machine's by now.
    if machine.provider_id and not machine.uid:
        return False
    return vm.machineName == machine.name


def agrees(tag, wanted):
    """Whether a tag does not contradict: VMs of other tools lack it."""
    return not tag or tag == wanted


def only_one(vms, machine):
    """The VM of a machine, or None."""
    if len(vms) > 1:
        raise Failure(contract.CODE_OUT_OF_RANGE, f"several VMs match machine {machine.namespace}/{machine.name}")
    return vms[0] if vms else None


def shown(vm):
    """A VM as the manager sees it. A real one also has addresses."""
    return contract.VirtualMachine(provider_id=vm.providerID, node_name=vm.machineName)


def size_in(provider_spec):
    """Reads the settings of the class; of a wrong one the answer names the member."""
    spec = json.loads(provider_spec)
    if not isinstance(spec, dict):
        raise invalid("providerSpec: must be an object")
    size = spec.get("size", "small")
    if not isinstance(size, str): raise invalid("providerSpec.size: must be a string")
    return size


def invalid(message):
    """Asking again with the same machine, class and secret cannot succeed."""
    return Failure(contract.CODE_INVALID_ARGUMENT, message, terminal=True)


def token_in(request):
    """Used for the one call it came with. A secret is never logged, kept or repeated in an answer."""
    return request.secret_data["token"].decode(errors="replace") if "token" in request.secret_data else ""
