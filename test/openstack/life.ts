/*
 * What one machine with a floating IP asks a cloud to change, in this order. pkg/drivers/openstack/lost-answers.test.ts loses each of these
 * on a simulated cloud; test/openstack/lost-answers.ts shows that real services are asked for the same, and loses a sample.
 */

/** A request, with `*` for IDs. */
export interface Change {
  readonly request: string;
  /** What else is like it. */
  readonly kind: string;
}

export const CREATION: readonly Change[] = [
  { request: 'POST /ports', kind: 'something beside a server is made' },
  { request: 'PUT /ports/*/tags', kind: 'a port is changed' },
  { request: 'POST /floatingips', kind: 'something beside a server is made' },
  { request: 'PUT /ports/*', kind: 'a port is changed' },
  { request: 'POST /servers', kind: 'a server is made' },
  { request: 'PUT /ports/*', kind: 'a port is changed' },
];

export const DELETION: readonly Change[] = [
  { request: 'DELETE /servers/*', kind: 'a server is deleted' },
  { request: 'DELETE /floatingips/*', kind: 'something beside a server is deleted' },
  { request: 'DELETE /ports/*', kind: 'something beside a server is deleted' },
];

/** A request as the lists above have it; `path` may begin with the version of the service. */
export function changeText(method: string, path: string): string {
  const [plain = ''] = path.split('?');
  const [, kind = '', id, ...more] = plain.replace(/^\/v[\d.]+/, '').split('/');
  return `${method} /${[kind, ...(id === undefined ? [] : ['*']), ...more].join('/')}`;
}
