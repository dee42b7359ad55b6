import type { Machine, MachineTemplateSpec, NodeTemplateSpec } from './machine.ts';
import type { MachineClass } from './machine-class.ts';
import type { MachineDeployment } from './machine-deployment.ts';
import type { MachineSet } from './machine-set.ts';
import type { NodeLabelPolicy } from './node-label-policy.ts';
import { isObject } from '../../members.ts';

/**
 * Objects as the server has stored them, made what their types say, in place: the original's CRDs let a spec be absent and check nothing
 * below the metadata of templates. Applied once, where objects enter (pkg/kube/client); nothing behind it has to expect anything else. What is
 * null, or of another type than ours says, counts as absent, as null does to a typed Go reader; validation.ts says what is missing.
 * What the server itself checks (the type of every other member) is not looked at.
 */

/** A Machine with a spec and a sound node template. */
export function normaliseMachine(machine: Machine): Machine {
  const spec = specOf(machine);
  normaliseNodeTemplate(spec, 'nodeTemplate');
  return machine;
}

/** A MachineSet with a spec and a sound template. */
export function normaliseMachineSet(set: MachineSet): MachineSet {
  normaliseTemplate(specOf(set));
  return set;
}

/** A MachineDeployment with a spec and a template. */
export function normaliseMachineDeployment(deployment: MachineDeployment): MachineDeployment {
  const spec = specOf(deployment);
  spec['template'] ??= {};
  normaliseTemplate(spec);
  return deployment;
}

/** A MachineClass without null but in its provider spec, which is the driver's. */
export function normaliseMachineClass(machineClass: MachineClass): MachineClass {
  const { nodeTemplate } = machineClass;
  if (isObject(nodeTemplate)) dropNulls(nodeTemplate);
  else delete machineClass.nodeTemplate;
  return machineClass;
}

/** A NodeLabelPolicy with a spec. */
export function normaliseNodeLabelPolicy(policy: NodeLabelPolicy): NodeLabelPolicy {
  specOf(policy);
  return policy;
}

type Members = Record<string, unknown>;

/** The spec of an object, which is there afterwards and holds no null. */
function specOf(object: { spec?: unknown; status?: unknown }): Members {
  const spec = isObject(object.spec) ? object.spec : {};
  dropNulls(spec);
  object.spec = spec;
  if (object.status === null) delete object.status;
  return spec;
}

function normaliseTemplate(owner: Members): void {
  const template = owner['template'] as MachineTemplateSpec | undefined; // its type is checked by the server
  if (template === undefined) return;
  normaliseMetadata(template);
  if (template.spec !== undefined) normaliseNodeTemplate(template.spec as Members, 'nodeTemplate');
}

function normaliseNodeTemplate(owner: Members, name: string): void {
  const template = owner[name] as NodeTemplateSpec | undefined; // its type is checked by the server
  if (template !== undefined) normaliseMetadata(template);
}

/** Free-form, but for the members that are copied to Machines and Nodes. */
function normaliseMetadata(template: { metadata?: unknown }): void {
  const { metadata } = template;
  if (!isObject(metadata)) {
    delete template.metadata;
    return;
  }
  for (const name of ['labels', 'annotations']) keepIf(metadata, name, isObject);
  for (const map of [metadata['labels'], metadata['annotations']].filter(isObject)) {
    for (const key of Object.keys(map)) keepIf(map, key, isText);
  }
  keepIf(metadata, 'finalizers', (value) => Array.isArray(value) && value.every(isText));
}

function keepIf(members: Members, name: string, isSound: (value: unknown) => boolean): void {
  if (name in members && !isSound(members[name])) delete members[name];
}

function dropNulls(value: unknown): void {
  if (Array.isArray(value)) {
    for (let i = value.length - 1; i >= 0; i--) if (value[i] === null) value.splice(i, 1);
    for (const entry of value) dropNulls(entry);
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (member === null) delete value[name];
      else dropNulls(member);
    }
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
