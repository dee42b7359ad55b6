import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

import type { Subject } from '../../../hack/control-plane/pki.ts';

/** A user, as authorization sees it. */
export type User = Required<Pick<Subject, 'user' | 'groups'>>;

/** Whether a request carries this bearer token. */
export function bearsToken({ headers }: IncomingMessage, token: string): boolean {
  const given = Buffer.from(headers.authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** Knows tokens that were made while the server runs. */
interface MoreTokens {
  userOf(token: string): User | undefined;
}

/** Who asks, by a token of this file, as kube-apiserver reads it, by one of `more`, or by a client certificate that was verified. */
export function authenticator(tokensFile: string, more: MoreTokens): (request: IncomingMessage) => User | undefined {
  const users = new Map(readFileSync(tokensFile, 'utf8').split('\n').flatMap(tokenOf));
  return ({ headers, socket }) => {
    const token = /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
    if (token !== undefined) return users.get(token) ?? more.userOf(token);
    return socket instanceof TLSSocket && socket.authorized ? subjectOf(socket) : undefined;
  };
}

/** A line `token,name,UID,"groups"`. */
function tokenOf(line: string): [string, User][] {
  const [, token, user, groups = ''] = /^([^,]+),([^,]+),[^,]*,"([^"]*)"$/.exec(line) ?? [];
  if (token === undefined || user === undefined) return [];
  return [
    [
      token,
      authenticated(
        user,
        groups.split(',').filter((group) => group !== ''),
      ),
    ],
  ];
}

function subjectOf(socket: TLSSocket): User {
  // Several of one name are a list, which the types of Node do not say.
  const { CN, O = [] } = socket.getPeerCertificate().subject as { CN: string; O?: string | string[] };
  return authenticated(CN, [O].flat());
}

function authenticated(user: string, groups: readonly string[]): User {
  return { user, groups: [...groups, 'system:authenticated'] };
}
