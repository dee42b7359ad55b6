import type { Kind } from './kinds.ts';

/** One of several reasons, as `details.causes` of a Status has them. */
export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** `details` of a Status. */
export interface Details {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

/** A request is refused: what a Status says of it. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: number;
  readonly reason: string;
  readonly details: Details | undefined;
  /** `metadata` of the Status; of an expired list it has the token to go on with. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(
    code: number,
    reason: string,
    message: string,
    { details, metadata = {} }: { details?: Details; metadata?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.metadata = metadata;
  }

  /** As it goes over the wire. */
  get status(): object {
    const { code, reason, message, details, metadata } = this;
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata,
      status: 'Failure',
      message,
      ...(reason !== '' && { reason }),
      ...(details && { details }),
      code,
    };
  }

  /** What is answered: a Status, or else a text. */
  get body(): object | string {
    return this.status;
  }
}

/** No such path: no handler of Kubernetes sees the request, and so nobody writes a Status. */
class NotServed extends Failure {
  override get body(): string {
    return '404 page not found\n';
  }
}

/** `machines.machine.sapcloud.io`, as texts name a resource. */
function qualified({ group, plural }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function detailsOf({ group, plural }: Kind, name: string): Details {
  return { name, ...(group !== '' && { group }), kind: plural };
}

export const notFound = (kind: Kind, name: string): Failure =>
  new Failure(404, 'NotFound', `${qualified(kind)} "${name}" not found`, { details: detailsOf(kind, name) });

/** No such path. */
export const notServed = (): Failure => new NotServed(404, '', '404 page not found');

export const alreadyExists = (kind: Kind, name: string): Failure =>
  new Failure(409, 'AlreadyExists', `${qualified(kind)} "${name}" already exists`, { details: detailsOf(kind, name) });

export const conflict = (kind: Kind, name: string, why: string): Failure =>
  new Failure(409, 'Conflict', `Operation cannot be fulfilled on ${qualified(kind)} "${name}": ${why}`, {
    details: detailsOf(kind, name),
  });

/** The resourceVersion of a write is not the present one. */
export const modified = (kind: Kind, name: string): Failure =>
  conflict(kind, name, 'the object has been modified; please apply your changes to the latest version and try again');

/** A DELETE of another object, or of another state of it, than is there. */
export const preconditionFailed = (kind: Kind, name: string, why: string): Failure =>
  conflict({ ...kind, plural: kind.kind }, name, why);

export const badRequest = (message: string): Failure => new Failure(400, 'BadRequest', message);

export const forbidden = (kind: Kind, name: string, why: string, causes?: readonly Cause[]): Failure =>
  new Failure(403, 'Forbidden', `${qualified(kind)} "${name}" is forbidden: ${why}`, {
    details: { ...detailsOf(kind, name), ...(causes && { causes }) },
  });

/** What is refused for its content. */
export function invalid(
  { group, kind }: Pick<Kind, 'group' | 'kind'>,
  name: string,
  causes: readonly Cause[],
): Failure {
  const texts = causes.map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`));
  const why = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const what = group === '' ? kind : `${kind}.${group}`;
  return new Failure(422, 'Invalid', `${what} "${name}" is invalid: ${why}`, {
    details: { ...(name !== '' && { name }), ...(group !== '' && { group }), ...(kind !== '' && { kind }), causes },
  });
}

/** A list or watch asks for what is forgotten. */
export const expired = (message: string, metadata: Readonly<Record<string, string>> = {}): Failure =>
  new Failure(410, 'Expired', message, { metadata });

/** What is asked for is of the future. */
export const tooLarge = (wanted: number, current: number): Failure =>
  new Failure(504, 'Timeout', `Too large resource version: ${wanted}, current: ${current}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });

/** Nothing is made up about requests that were never compared with a real server's answer. */
export const notSimulated = (what: string): Failure =>
  new Failure(501, 'NotImplemented', `the simulated API server does not know ${what}`);
