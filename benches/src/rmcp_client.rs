//! rmcp as its documentation shows it: its own transports, its typed results.

use futures::{FutureExt, future::BoxFuture};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use tokio::process::Command;

use crate::client::{ARGUMENTS, Client, Place, Result};

pub(crate) struct Rmcp(RunningService<RoleClient, ClientConfig>);

pub(crate) async fn connect(place: &Place) -> Result<Box<dyn Client>> {
    Ok(Box::new(open(place).await?))
}

pub(crate) async fn open(place: &Place) -> Result<Rmcp> {
    let mut config = ClientConfig::default();
    config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
    let service = match place {
        Place::Stdio(command) => {
            let mut child = Command::new(&command[0]);
            child.args(&command[1..]);
            config.serve(TokioChildProcess::new(child)?).await?
        }
        Place::Http(url) => config.serve(StreamableHttpClientTransport::from_uri(url.as_str())).await?,
    };
    service.list_all_tools().await?;
    Ok(Rmcp(service))
}

impl Rmcp {
    pub(crate) async fn close(self) -> Result<()> {
        self.0.cancel().await?;
        Ok(())
    }
}

impl Client for Rmcp {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let params = CallToolRequestParams::new(tool).with_arguments(serde_json::from_str(ARGUMENTS)?);
            let result = self.0.call_tool(params).await?;
            Ok(result.content.len())
        }
        .boxed()
    }
}
