import type { PeerCertificate } from 'node:tls';

/** One alternative name as Node writes it: what could be taken for another one is quoted as in JSON. */
const ALTERNATIVE = /([A-Za-z ]+):("(?:\\.|[^"\\])*"|[^,"]*)(?:, |$)/gy;

/** The names that a client's certificate shows: its common name, and its alternative names. */
export function namesOf({
  subject,
  subjectaltname = '',
}: Pick<PeerCertificate, 'subject' | 'subjectaltname'>): readonly string[] {
  const common: unknown = subject?.CN;
  const alternatives = [...subjectaltname.matchAll(ALTERNATIVE)]
    .filter(([, kind]) => kind === 'DNS' || kind === 'URI')
    .map(([, , text = '']) => (text.startsWith('"') ? String(JSON.parse(text)) : text));
  return [...(typeof common === 'string' ? [common] : []), ...alternatives];
}
