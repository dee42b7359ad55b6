/** A field of our kinds that definitions of others, or of an earlier release, may not know: what is stored in it is lost. */
export interface NeededField {
  readonly kind: 'Machine' | 'MachineSet' | 'MachineDeployment' | 'MachineClass';
  readonly plural: string;
  readonly path: string;
  /** What does not work without it. */
  readonly lost: string;
}

const MACHINE = { kind: 'Machine', plural: 'machines' } as const;
const SET = { kind: 'MachineSet', plural: 'machinesets' } as const;
const DEPLOYMENT = { kind: 'MachineDeployment', plural: 'machinedeployments' } as const;

/** What releases of the original's definitions differ in, and what we added. */
export const NEEDED_FIELDS: readonly NeededField[] = [
  { ...MACHINE, path: 'status.machineConditions', lost: 'conditions of Machines are not stored' },
  { ...MACHINE, path: 'status.vmCapacity', lost: 'the resources of VMs are not shown before their Nodes join' },
  { ...MACHINE, path: 'status.currentStatus.preserveExpiryTime', lost: 'machines are not preserved' },
  { ...MACHINE, path: 'spec.inPlaceUpdateTimeout', lost: 'the timeout of an in-place update is not stored' },
  { ...SET, path: 'spec.autoPreserveFailedMachineMax', lost: 'failed machines are not preserved' },
  { ...DEPLOYMENT, path: 'spec.autoPreserveFailedMachineMax', lost: 'failed machines are not preserved' },
  { ...DEPLOYMENT, path: 'spec.strategy.inPlaceUpdate', lost: 'in-place updates are not available' },
  { kind: 'MachineClass', plural: 'machineclasses', path: 'nodeTemplate', lost: 'autoscalers cannot scale from zero' },
];

/** The part of an OpenAPI schema that is looked at. */
export interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** Those of `NEEDED_FIELDS` that the schema of their kind does not know; a kind without a schema is not looked at. */
export function unknownFields(schemaOf: (kind: NeededField['kind']) => Schema | undefined): readonly NeededField[] {
  return NEEDED_FIELDS.filter(({ kind, path }) => {
    const schema = schemaOf(kind);
    return schema !== undefined && !isKnown(schema, path.split('.'));
  });
}

function isKnown(schema: Schema, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true) return true;
  const below = schema.properties?.[first];
  return below !== undefined && isKnown(below, rest);
}

/** What is lost, and what helps, in one line. */
export function describeUnknown(unknown: readonly NeededField[]): string {
  const fields = unknown.map(({ kind, path, lost }) => `${path} of ${kind} (without it ${lost})`).join('; ');
  const files = [...new Set(unknown.map(({ plural }) => `crds/machine.sapcloud.io_${plural}.yaml`))].join(' and ');
  return `the control cluster drops ${fields}: apply ${files}`;
}
