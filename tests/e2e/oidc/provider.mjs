// An OpenID Connect provider (npm oidc-provider, certified) with one public client, two flows, and people whose claims
// stand in a file that is read anew at each login: {"anna": {"email": "...", "groups": ["ml"]}}. Prints its address.
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {Provider} from 'oidc-provider';

const people = () => JSON.parse(readFileSync(process.argv[2], 'utf8'));
const server = createServer((request, response) => provider.callback()(request, response));
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
    clients: [{
        client_id: 'stoker',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types: ['code'],
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/'],  // of stoker login, and of the console
        id_token_signed_response_alg: process.argv[3] || 'RS256',
    }, {
        client_id: 'another',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: ['http://127.0.0.1/callback'],
    }],
    claims: {openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups']},
    conformIdTokenClaims: false,
    features: {deviceFlow: {enabled: true}, devInteractions: {enabled: true}},
    enabledJWA: {idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA']},
    clientBasedCORS: () => true,  // the console asks for its token from the page
    pkce: {required: () => true},
    async findAccount(_, id) {
        return {accountId: id, claims: async () => ({sub: id, ...people()[id]})};
    },
});
// As Keycloak does for a client that demands PKCE (tests/e2e/sso_keycloak_test.py).
provider.use(async (context, next) => {
    await next();
    if (context.oidc?.route !== 'device_authorization' || context.oidc.body?.code_challenge_method === 'S256') return;
    context.status = 400;
    context.body = {error: 'invalid_request', error_description: 'Missing parameter: code_challenge_method'};
});
console.log(issuer);
