import { copyOf, equal, isMembers, type Members } from '../json.ts';

/** An operation that cannot be done: 422, as the API server answers. */
export class JsonPatchError extends Error {
  override readonly name = 'JsonPatchError';
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** RFC 6902: the value after a JSON patch. Throws JsonPatchError. */
export function jsonPatched(value: unknown, patch: readonly unknown[]): unknown {
  const root = { '': copyOf(value) };
  for (const operation of patch) apply(root, operation as Operation);
  return root[''];
}

function apply(root: Members, { op, path, from, value }: Operation): void {
  switch (op) {
    case 'add':
      return add(root, path, copyOf(value));
    case 'remove':
      return void remove(root, path);
    case 'replace':
      read(root, path);
      return set(root, path, copyOf(value));
    case 'move':
      return add(root, path, remove(root, from ?? ''));
    case 'copy':
      return add(root, path, copyOf(read(root, from ?? '')));
    case 'test':
      if (!equal(readIfAny(root, path) ?? null, value ?? null)) {
        throw new JsonPatchError(`testing value ${path} failed`);
      }
      return;
    default:
      throw new JsonPatchError(`Unexpected kind: ${op}`);
  }
}

function parentOf(root: Members, path: string): { parent: unknown; name: string } {
  const names = path.split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const name = names.pop() ?? '';
  let parent: unknown = root;
  for (const step of names) parent = child(parent, step);
  return { parent: names.length === 0 ? root : parent, name };
}

function child(parent: unknown, name: string): unknown {
  if (Array.isArray(parent)) return (parent as unknown[])[Number(name)];
  return isMembers(parent) && Object.hasOwn(parent, name) ? parent[name] : undefined;
}

function readIfAny(root: Members, path: string): unknown {
  const { parent, name } = parentOf(root, path);
  return child(parent, name);
}

function read(root: Members, path: string): unknown {
  const value = readIfAny(root, path);
  if (value === undefined) throw new JsonPatchError(`missing value: ${path}`);
  return value;
}

function add(root: Members, path: string, value: unknown): void {
  const { parent, name } = parentOf(root, path);
  if (!Array.isArray(parent)) return set(root, path, value);
  const index = name === '-' ? parent.length : Number(name);
  if (!(index >= 0 && index <= parent.length)) throw new JsonPatchError(`index out of bounds: ${path}`);
  parent.splice(index, 0, value);
}

function set(root: Members, path: string, value: unknown): void {
  const { parent, name } = parentOf(root, path);
  if (Array.isArray(parent)) parent[Number(name)] = value;
  else if (isMembers(parent)) parent[name] = value;
  else throw new JsonPatchError(`missing path: ${path}`);
}

function remove(root: Members, path: string): unknown {
  const value = read(root, path);
  const { parent, name } = parentOf(root, path);
  if (Array.isArray(parent)) parent.splice(Number(name), 1);
  else delete (parent as Members)[name];
  return value;
}
