import { expect, test } from '@jest/globals';

import { obstacle } from './packages.ts';

const DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n';

test.each([
  { what: 'Debian 12', osRelease: DEBIAN_12, missing: '', says: /^nothing$/ },
  { what: 'Debian 13', osRelease: DEBIAN_12.replace('"12"', '"13"'), missing: '', says: /another system/ },
  { what: 'a derivative', osRelease: DEBIAN_12.replace('ID=debian', 'ID=other'), missing: '', says: /another system/ },
  { what: 'a system that does not say', osRelease: '', missing: '', says: /another system/ },
  { what: 'Debian 12 without apt', osRelease: DEBIAN_12, missing: '/usr/bin/apt-get', says: /apt-get/ },
  { what: 'Debian 12 without Python', osRelease: DEBIAN_12, missing: '/usr/bin/python3', says: /python3/ },
])('what stands against OpenStack on $what', ({ osRelease, missing, says }) => {
  expect(obstacle(osRelease, (path) => path !== missing) ?? 'nothing').toMatch(says);
});
