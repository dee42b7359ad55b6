import { vmClassNameOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineClass, SecretReference } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { machineClasses, machines } from '../../../pkg/kube/client/resource.ts';
import { optionalMember } from '../../../pkg/apis/optional-member.ts';
import { type DescribedEvent, eventsOf } from '../../../pkg/fleet/describe/described.ts';
import { eventLines, fieldLines } from '../../../pkg/fleet/describe/layout.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';

/** What `machinist describe` tells of a MachineClass; printed as it is with `-o json`. */
interface ClassDescription {
  readonly name: string;
  readonly namespace: string;
  readonly provider?: string;
  readonly instanceType?: string;
  readonly region?: string;
  readonly zone?: string;
  /** `NAMESPACE/NAME`; the second one overrides keys of the first. */
  readonly secrets: readonly string[];
  /** Number of Machines whose VMs are of the class, in its namespace. */
  readonly machines: number;
  /** Whether the finalizer keeps it while VMs need it. */
  readonly isKept: boolean;
  readonly deletionTimestamp?: string;
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

export const describedMachineClass: DescribedKind<MachineClass, ClassDescription> = {
  resource: machineClasses,
  async describe(reader, machineClass, told) {
    const { name, namespace = '', finalizers = [], deletionTimestamp } = machineClass.metadata;
    const { items } = await reader.list(machines, { namespace });
    const { instanceType, region, zone } = machineClass.nodeTemplate ?? {};
    const { secretRef, credentialsSecretRef } = machineClass;
    return {
      name,
      namespace,
      ...optionalMember('provider', machineClass.provider),
      ...optionalMember('instanceType', instanceType),
      ...optionalMember('region', region),
      ...optionalMember('zone', zone),
      secrets: [secretRef, credentialsSecretRef].flatMap(shownReference),
      machines: items.filter((machine) => vmClassNameOf(machine) === name).length,
      isKept: finalizers.includes(MACHINE_FINALIZER),
      ...optionalMember('deletionTimestamp', deletionTimestamp),
      events: eventsOf(told),
    };
  },
  render,
};

function shownReference(reference: SecretReference | undefined): string[] {
  return reference?.name === undefined ? [] : [`${reference.namespace ?? ''}/${reference.name}`];
}

function render(description: ClassDescription, nowMs: number): string {
  const { name, namespace, provider, instanceType, region, zone, secrets, isKept, deletionTimestamp } = description;
  return [
    ...fieldLines([
      ['Name', name],
      ['Namespace', namespace],
      ['Provider', provider ?? '<none>'],
      ['Type', instanceType],
      ['Region', region],
      ['Zone', zone],
      ['Secrets', secrets.length === 0 ? '<none>' : secrets.join(', ')],
      ['Machines', String(description.machines)],
      ['Deletion', deletionTimestamp],
      ['Waiting For', deletionTimestamp !== undefined && isKept ? waitingFor(description) : undefined],
    ]),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}

function waitingFor({ machines: count }: ClassDescription): string {
  return count === 0
    ? 'a list of the VMs of the provider that shows none of this class without a Machine'
    : `${count === 1 ? '1 Machine' : `${count} Machines`} to be deleted, whose VMs are found with this class`;
}
